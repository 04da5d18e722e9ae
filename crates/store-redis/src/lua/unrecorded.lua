-- Archived tasks whose dead letter nobody has confirmed, in one queue the oldest first.
--
-- KEYS      the archive
-- ARGV      time; prefix; how many at most; the second before which all are known to be recorded
-- Returns   the time; tasks as shown; the second before which all are recorded now
-- Protects  whoever archived a task, each entry into the archive is found: what is noted is the entry's own second.

local p, left, from = ARGV[2], tonumber(ARGV[3]), ARGV[4]
local STEP = 500
local out, skip, known = {}, 0, nil
while true do
  local found = call('ZRANGEBYSCORE', p .. 'archived', from, '+inf', 'WITHSCORES', 'LIMIT', skip, STEP)
  for i = 1, #found, 2 do
    local id, score = found[i], found[i + 1]
    local f = load(p .. 't:' .. id)
    if f and f.msg and f.recorded ~= score then
      known = known or score
      if #out == left then return { now_text, out, known } end
      out[#out + 1] = show(p, id, f)
    end
  end
  if #found < 2 * STEP then break end
  skip = skip + STEP
end
-- A host whose clock is behind may still archive into the last minutes.
return { now_text, out, known or text(now_s - 600) }
