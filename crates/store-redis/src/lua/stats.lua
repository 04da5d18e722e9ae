-- Queues in numbers.
--
-- KEYS      one key of each queue
-- ARGV      time; then the prefixes
-- Returns   the time; for each queue its numbers in the order below
-- Bounded   a few commands a queue, whatever it holds: groups are counted, not walked.

local function number(key) return tonumber(call('GET', key) or 0) end

local function paused(p)
  local since = call('GET', p .. 'paused')
  if not since then return '', '' end
  local because = call('GET', p .. 'paused_because') or ''
  local micros, reason = string.match(because, '^(%d+) (.*)$')
  -- A reason of an earlier pause says nothing of one by asynq's tools.
  if micros and floor(tonumber(micros) / 1000000) == tonumber(since) then return micros, reason end
  return text((tonumber(since) or 0) * 1000000), ''
end

local out, today = { now_text }, date(floor(now / DAY))
for i = 2, #ARGV do
  local p = ARGV[i]
  local oldest, since = call('LINDEX', p .. 'pending', -1), nil
  if oldest then since = pcall('HGET', p .. 't:' .. oldest, 'pending_since') end
  local paused_since, reason = paused(p)
  out[#out + 1] = {
    call('LLEN', p .. 'pending'), call('LLEN', p .. 'active'), call('ZCARD', p .. 'scheduled'), call('ZCARD', p .. 'retry'),
    call('ZCARD', p .. 'archived'), call('ZCARD', p .. 'completed'), call('ZCARD', p .. 'quarantined'),
    number(p .. 'processed:' .. today), number(p .. 'failed:' .. today), number(p .. 'processed'), number(p .. 'failed'),
    paused_since, reason, type(since) == 'string' and since or '',
  }
end
return out
