-- Sets aside tasks whose message was read and could not be understood.
--
-- KEYS      one key of each queue
-- ARGV      time; number of queues; their prefixes; then for each: number of its queue, id, the message that was read, reason
-- Returns   the time; how many were set aside
-- Protects  only what was read goes: a task that has another message by now stays.

local queues, done = tonumber(ARGV[2]), 0
for i = 3 + queues, #ARGV, 4 do
  local p, id = ARGV[2 + ARGV[i]], ARGV[i + 1]
  local f = load(p .. 't:' .. id)
  if f and f.msg == ARGV[i + 2] then
    leave(p, id, f)
    forget(p, id)
    set_aside(p, id, f, ARGV[i + 3])
    done = done + 1
  end
end
return { now_text, done }
