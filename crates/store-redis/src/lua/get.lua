-- One task.
--
-- KEYS      its hash
-- ARGV      time; prefix; id
-- Returns   the time; the task as shown, if it is there

local f, wrong = load(KEYS[1])
if wrong then return redis.error_reply(wrong) end
if not f or not f.msg then return { now_text } end
return { now_text, show(ARGV[2], ARGV[3], f) }
