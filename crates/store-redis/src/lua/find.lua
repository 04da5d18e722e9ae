-- Tasks of one queue that work for a subject or belong to a scope.
--
-- KEYS      the index entry
-- ARGV      time; prefix; what: `subject:...` or `scope:...`; how many at most
-- Returns   the time; for each { id, state, message }; '1' when there are more
-- Protects  the record decides: an entry whose task is gone or says otherwise is dropped.

local p, what, most = ARGV[2], ARGV[3], tonumber(ARGV[4])
local STEP = 500
local out, skip = {}, 0
while true do
  local ids = call('ZRANGE', KEYS[1], skip, skip + STEP - 1)
  for _, member in ipairs(ids) do
    local id = from_member(member)
    local got = pcall('HMGET', p .. 't:' .. id, 'msg', 'state')
    if got[1] and got[2] and says(got[1], what) then
      if #out == most then return { now_text, out, '1' } end
      out[#out + 1] = { id, got[2], got[1] }
      skip = skip + 1
    else
      call('ZREM', KEYS[1], member)
    end
  end
  if #ids < STEP then return { now_text, out, '' } end
end
