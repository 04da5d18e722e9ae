-- Stops claims from a queue, or allows them again.
--
-- KEYS      its flag
-- ARGV      time; prefix; 'pause' or 'resume'; reason
-- Returns   the time; '1' when that changed something
-- Protects  the time of a pause stays when its reason is replaced.

local p = ARGV[2]
if ARGV[3] == 'resume' then
  call('DEL', p .. 'paused_because')
  return { now_text, call('DEL', KEYS[1]) == 1 and '1' or '' }
end
if call('EXISTS', KEYS[1]) == 0 then
  call('SET', KEYS[1], text(now_s))
  call('SET', p .. 'paused_because', now_text .. ' ' .. ARGV[4])
  return { now_text, '1' }
end
local since = tonumber(call('GET', KEYS[1])) or now_s
local exact = string.match(call('GET', p .. 'paused_because') or '', '^(%d+) ')
if not exact or floor(tonumber(exact) / 1000000) ~= since then exact = text(since * 1000000) end
call('SET', p .. 'paused_because', exact .. ' ' .. ARGV[4])
return { now_text, '' }
