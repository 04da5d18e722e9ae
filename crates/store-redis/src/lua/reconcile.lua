-- Mends the lists of a queue: what runs has a lease, what has a lease runs.
--
-- KEYS      a key of the queue
-- ARGV      time; prefix; how long a lease is that is made up (seconds)
-- Returns   the time; active tasks without a lease; leases without an active task
-- Protects  a task in the active list is always found by whoever takes over (asynq never looks at one without a lease).

local p = ARGV[2]
local leaseless, stray = 0, 0
local active = call('LRANGE', p .. 'active', 0, -1)
local runs = {}
for _, id in ipairs(active) do
  runs[id] = true
  local f, wrong = load(p .. 't:' .. id)
  if not f or not f.msg then
    leave_active(p, id)
    set_aside(p, id, f, wrong or 'the id was active, and there is no message for it')
    leaseless = leaseless + 1
  elseif not call('ZSCORE', p .. 'lease', id) then
    -- Its own lease where it has one: its holder may live. Else a fresh one, which nobody will extend.
    local own = f.state == 'active' and lease_of(f)
    call('ZADD', p .. 'lease', own and second(own.till) or now_s + tonumber(ARGV[3]), id)
    if f.state ~= 'active' then call('HSET', p .. 't:' .. id, 'state', 'active') end
    leaseless = leaseless + 1
  end
end
for _, id in ipairs(call('ZRANGE', p .. 'lease', 0, -1)) do
  if not runs[id] then
    call('ZREM', p .. 'lease', id)
    stray = stray + 1
  end
end
if #active == 0 and call('EXISTS', p .. 'pending') == 0 then call('DEL', p .. 'claims') end
return { now_text, leaseless, stray }
