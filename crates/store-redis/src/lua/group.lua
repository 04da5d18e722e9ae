-- The tasks that wait in a group.
--
-- KEYS      the group
-- ARGV      time; prefix; how many at most
-- Returns   the time; tasks as shown

local p, most = ARGV[2], tonumber(ARGV[3])
local out = {}
if most > 0 then
  for _, id in ipairs(call('ZRANGE', KEYS[1], 0, most - 1)) do
    local f = load(p .. 't:' .. id)
    if f and f.msg then out[#out + 1] = show(p, id, f) end
  end
end
return { now_text, out }
