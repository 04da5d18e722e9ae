-- Asks for the end of tasks: flags those that wait or run.
--
-- KEYS      one key of each queue
-- ARGV      time; number of queues; their prefixes; then for each: number of its queue, id
-- Returns   the time; for each its state, or ''
-- Protects  what has ended is left as it is.

local queues = tonumber(ARGV[2])
local out = { now_text }
for i = 3 + queues, #ARGV, 2 do
  local key = ARGV[2 + ARGV[i]] .. 't:' .. ARGV[i + 1]
  local got = pcall('HMGET', key, 'state', 'msg')
  local state = got[2] and got[1] or ''
  if state ~= '' and state ~= 'archived' and state ~= 'completed' then call('HSET', key, 'cancel', '1') end
  out[#out + 1] = state
end
return out
