-- Notes what a running task says: a result, or how far it is.
--
-- KEYS      a key of its queue
-- ARGV      time; prefix; id; token; 'result' or 'progress'; the bytes, or how far and a word as 'done note'
-- Returns   the time; 'noted', 'lost' or 'missing'
-- Protects  nothing is written for a task that is gone (asynq leaves a ghost that blocks the id for ever) or not the caller's.

local p, id, token = ARGV[2], ARGV[3], ARGV[4]
local key = p .. 't:' .. id
local f = load(key)
if not f or not f.msg then return { now_text, 'missing' } end
if f.token ~= token or not our_lease(p, id, f) then return { now_text, 'lost' } end
if ARGV[5] == 'result' then
  call('HSET', key, 'result', ARGV[6])
else
  call('HSET', key, 'progress', now_text .. ' ' .. ARGV[6])
end
return { now_text, 'noted' }
