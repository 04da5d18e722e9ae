-- The last days of a queue, today first.
--
-- KEYS      a key of the queue
-- ARGV      time; prefix; days
-- Returns   the time; today as days since 1970; for each day processed and failed

local p, today = ARGV[2], floor(now / DAY)
local out = {}
for back = 0, tonumber(ARGV[3]) - 1 do
  local day = date(today - back)
  out[#out + 1] = call('GET', p .. 'processed:' .. day) or '0'
  out[#out + 1] = call('GET', p .. 'failed:' .. day) or '0'
end
return { now_text, today, out }
