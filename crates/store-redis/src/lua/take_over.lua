-- Takes over active tasks whose worker lost contact: they stay active, with a new token and a new lease.
--
-- KEYS      one key of each queue
-- ARGV      time; how many at most; lease in microseconds; the time after which nothing is taken over; how far ahead a lease may
--           end; how long a lease of a Go worker must stand still; beginning of all tokens (12 bytes); then the prefixes
-- Returns   the time; for each task { number of its queue, token, task as shown }
-- Protects  a living worker keeps its task: ours by the exact end of its lease, a Go worker by whether its lease still moves,
--           whatever its clock shows. What cannot be read stops nothing (asynq's recoverer fails as a whole).

local left, lease, not_after = tonumber(ARGV[2]), tonumber(ARGV[3]), tonumber(ARGV[4])
local ahead, still, stem = tonumber(ARGV[5]), tonumber(ARGV[6]), ARGV[7]
if now > not_after then return { now_text, {} } end
local taken = {}

-- Whether a lease that is not ours has stood still for long enough by the server's clock.
local function stands_still(p, id, f, score)
  local seen, since = string.match(f.seen or '', '^(%S+) (%d+)$')
  if seen == score and tonumber(since) <= now then return now - since >= still end
  -- Not when memory is full: then it is seen later.
  pcall('HSET', p .. 't:' .. id, 'seen', score .. ' ' .. now_text)
  return false
end

-- The end of a lease that has expired, in microseconds; none when it has not.
local function expired(p, id, f, score)
  local own = lease_of(f)
  if own and second(own.till) == tonumber(score) then
    if own.till <= now or own.till > now + ahead then return own.till end
    return nil
  end
  local till = tonumber(score) * 1000000
  if (till <= now or till > now + ahead) and stands_still(p, id, f, score) then return till end
end

local function take(p, q, id, f, score)
  local own = lease_of(f) or { started = now_text, place = '0' }
  local token = stem .. char(floor(#taken / 16777216) % 256, floor(#taken / 65536) % 256, floor(#taken / 256) % 256,
    #taken % 256)
  -- First what takes no memory, as in `extend.lua`.
  call('ZREM', p .. 'lease', id)
  f.token, f.lease = token, lease_text(now + lease, own.started, own.place)
  call('HSET', p .. 't:' .. id, 'token', token, 'lease', f.lease)
  call('HDEL', p .. 't:' .. id, 'seen')
  call('ZADD', p .. 'lease', second(now + lease), id)
  taken[#taken + 1] = { q, token, show(p, id, f) }
end

local function look(p, q, found)
  local late = {}
  for i = 1, #found, 2 do
    local id, score = found[i], found[i + 1]
    local f, wrong = load(p .. 't:' .. id)
    if not f or not f.msg then
      leave_active(p, id)
      set_aside(p, id, f, wrong or 'the id was active, and there is no message for it')
    elseif f.state ~= 'active' then
      call('ZREM', p .. 'lease', id)
    else
      local till = expired(p, id, f, score)
      if till then late[#late + 1] = { till = till, id = id, f = f, score = score } end
    end
  end
  table.sort(late, function(a, b)
    if a.till ~= b.till then return a.till < b.till end
    return a.id < b.id
  end)
  for _, task in ipairs(late) do
    if left == 0 then return end
    take(p, q, task.id, task.f, task.score)
    left = left - 1
  end
end

for q = 8, #ARGV do
  local p = ARGV[q]
  if left > 0 then
    look(p, q - 7, call('ZRANGEBYSCORE', p .. 'lease', '-inf', now_s + 1, 'WITHSCORES', 'LIMIT', 0, left + 1000))
  end
  if left > 0 then
    look(p, q - 7, call('ZRANGEBYSCORE', p .. 'lease', floor((now + ahead) / 1000000), '+inf', 'WITHSCORES'))
  end
end
return { now_text, taken }
