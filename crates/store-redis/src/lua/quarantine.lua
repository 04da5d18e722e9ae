-- What was set aside, latest first.
--
-- KEYS      the set of what was set aside
-- ARGV      time; prefix; how many at most
-- Returns   the time; for each { id, reason, microseconds, message }

local p, most = ARGV[2], tonumber(ARGV[3])
local out = {}
if most > 0 then
  for _, id in ipairs(call('ZREVRANGE', p .. 'quarantined', 0, most - 1)) do
    local f = load(p .. 'quarantine:' .. id) or {}
    out[#out + 1] = { id, f.quarantine_reason or '', f.quarantined_at or '0', f.msg or '' }
  end
end
return { now_text, out }
