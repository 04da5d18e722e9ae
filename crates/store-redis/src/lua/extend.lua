-- Makes leases last from now.
--
-- KEYS      one key of each queue
-- ARGV      time; number of queues; their prefixes; for each queue its lease in microseconds; then for each: number of its queue,
--           id, token
-- Returns   the time; for each 'kept', 'cancelled' or 'lost'
-- Protects  a lease is its holder's until another took the task over; nobody else makes it longer.

local queues = tonumber(ARGV[2])
local out = { now_text }
for i = 3 + 2 * queues, #ARGV, 3 do
  local p, id = ARGV[2 + ARGV[i]], ARGV[i + 1]
  local till = now + tonumber(ARGV[2 + queues + ARGV[i]])
  local key = p .. 't:' .. id
  local got = pcall('HMGET', key, 'state', 'token', 'lease', 'cancel')
  local f = { state = got[1], token = got[2], lease = got[3] }
  local held = f.token == ARGV[i + 2] and our_lease(p, id, f)
  if held then
    -- First what takes no memory: when that is full a script that has written may go on, and a lease must not be lost for it.
    call('ZREM', p .. 'lease', id)
    call('HSET', key, 'lease', lease_text(till, held.started, held.place))
    call('ZADD', p .. 'lease', second(till), id)
    out[#out + 1] = got[4] and 'cancelled' or 'kept'
  else
    out[#out + 1] = 'lost'
  end
end
return out
