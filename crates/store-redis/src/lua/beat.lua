-- Says that a server lives, and which pools it has.
--
-- KEYS      the record; where one server has all keys: ids of processes, index of servers, index of workers; for each pool its
--           record as a server of asynq's, what it runs
-- ARGV      time; how long it lasts (microseconds); the record; the id of the process; a pool's record, how many tasks it runs,
--           each with its id and its record
-- Returns   the time; when it is over (microseconds); the records of the servers that are none of ours
-- Protects  what is read later shows the store's time of the heartbeat; a pool is shown whole or not at all.

local over = now + tonumber(ARGV[2])
local ends, last = text(ceil(math.min(over, FAR) / 1000)), text(floor(over / 1000000) + 1)
call('SET', KEYS[1], now_text .. ' ' .. text(over) .. ' ' .. ARGV[3], 'PXAT', ends)
if #KEYS == 1 then return { now_text, text(over), {} } end

local _, processes, servers, workers = unpack(KEYS)
call('ZADD', processes, last, ARGV[4])
local arg = 5
for i = 5, #KEYS, 2 do
  call('ZADD', servers, last, KEYS[i])
  call('ZADD', workers, last, KEYS[i + 1])
  call('SET', KEYS[i], ARGV[arg], 'PXAT', ends)
  call('DEL', KEYS[i + 1])
  local running = tonumber(ARGV[arg + 1])
  local first, final = arg + 2, arg + 1 + 2 * running
  for from = first, final, 1000 do
    call('HSET', KEYS[i + 1], unpack(ARGV, from, math.min(from + 999, final)))
  end
  if running > 0 then call('PEXPIREAT', KEYS[i + 1], ends) end
  arg = final + 1
end

local others = {}
for _, key in ipairs(call('ZRANGEBYSCORE', servers, now_s, '+inf')) do
  local record = not find(key, '/', 1, true) and pcall('GET', key)
  if type(record) == 'string' then others[#others + 1] = record end
end
return { now_text, text(over), others }
