-- Gives a waiting task another due time or another payload.
--
-- KEYS      its hash
-- ARGV      time; prefix; id; 'payload', bytes, or 'when', 'now' | 'after' | 'at', microseconds
-- Returns   the time; 'done', 'missing' or 'wrong'; its state
-- Protects  only what waits is changed; its lock and its index entries stay as enqueued.

local p, id = ARGV[2], ARGV[3]
local f, wrong = load(KEYS[1])
if wrong then return redis.error_reply(wrong) end
if not f or not f.msg or not f.state then return { now_text, 'missing', '' } end
local state = f.state
if state ~= 'pending' and state ~= 'scheduled' and state ~= 'retry' then return { now_text, 'wrong', state } end
if ARGV[4] == 'payload' then
  call('HSET', KEYS[1], 'msg', rewrite(f.msg, { [2] = ARGV[5] }))
  return { now_text, 'done', state }
end
local due = due_of({ when = ARGV[5], time = tonumber(ARGV[6]) })
if due then
  leave(p, id, f)
  wait_until(p, id, f, state == 'retry' and 'retry' or 'scheduled', due)
elseif state ~= 'pending' then
  leave(p, id, f)
  wait(p, id, f)
end
return { now_text, 'done', state }
