-- Confirms that dead letters are stored.
--
-- KEYS      one key of each queue
-- ARGV      time; number of queues; their prefixes; then for each: number of its queue, id, token
-- Returns   the time
-- Protects  a letter confirms the end that it tells of, and no earlier or later one.

local queues = tonumber(ARGV[2])
for i = 3 + queues, #ARGV, 3 do
  local p, id = ARGV[2 + ARGV[i]], ARGV[i + 1]
  local key = p .. 't:' .. id
  local got = pcall('HMGET', key, 'state', 'token', 'failed_at')
  if got[1] == 'archived' then
    local score = call('ZSCORE', p .. 'archived', id)
    if score and token_of(id, { token = got[2], failed_at = got[3] }, score) == ARGV[i + 2] then
      call('HSET', key, 'recorded', score)
      -- A Go worker that archived it knew no flag.
      call('HDEL', key, 'cancel')
    end
  end
end
return { now_text }
