-- Makes leases last from now.
--
-- KEYS      one key of each queue
-- ARGV      time; lease in microseconds; number of queues; their prefixes; then for each: number of its queue, id, token
-- Returns   the time; for each 'kept', 'cancelled' or 'lost'
-- Protects  a lease is its holder's until another took the task over; nobody else makes it longer.

local lease, queues = tonumber(ARGV[2]), tonumber(ARGV[3])
local out = { now_text }
local till = second(now + lease)
for i = 4 + queues, #ARGV, 3 do
  local p, id = ARGV[3 + ARGV[i]], ARGV[i + 1]
  local key = p .. 't:' .. id
  local got = pcall('HMGET', key, 'state', 'token', 'lease', 'cancel')
  local f = { state = got[1], token = got[2], lease = got[3] }
  local held = f.token == ARGV[i + 2] and our_lease(p, id, f)
  if held then
    -- First what takes no memory: when that is full a script that has written may go on, and a lease must not be lost for it.
    call('ZREM', p .. 'lease', id)
    call('HSET', key, 'lease', lease_text(now + lease, held.started, held.place, held.since))
    call('ZADD', p .. 'lease', till, id)
    out[#out + 1] = got[4] and 'cancelled' or 'kept'
  else
    out[#out + 1] = 'lost'
  end
end
return out
