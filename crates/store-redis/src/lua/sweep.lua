-- Removes completed tasks whose retention has passed and archived ones beyond the limits, in bounded steps.
--
-- KEYS      one key of each queue
-- ARGV      time; how many at most; then for each queue: prefix, how many archived at most, how old at most (microseconds), '1'
--           when those without a recorded dead letter are spared
-- Returns   the time; how many had expired; how many were trimmed; '1' when more is left
-- Protects  whatever is trimmed goes with its hash, lock and index entries (asynq leaves hashes behind, or fails for good once
--           8,000 are due together); nothing newer goes instead of one that is spared.

local left, expired, trimmed, more = tonumber(ARGV[2]), 0, 0, false
local STEP = 500

local function erase(p, list, id, f)
  call('ZREM', p .. list, id)
  if f then
    unlock(p, id, f)
    unindex(p, id, f.msg)
    call('DEL', p .. 't:' .. id)
  end
end

-- The exact end of a retention: what is written beside it if that is ours, else the score.
local function expiry(f, score)
  local own = f and tonumber(f.expires_at or '')
  if own and second(own) == tonumber(score) then return own end
  return tonumber(score) * 1000000
end

local function sweep_completed(p)
  local skipped = 0
  while true do
    local found = call('ZRANGEBYSCORE', p .. 'completed', '-inf', now_s + 1, 'WITHSCORES', 'LIMIT', skipped, STEP)
    for i = 1, #found, 2 do
      local f = load(p .. 't:' .. found[i])
      if expiry(f, found[i + 1]) > now then
        skipped = skipped + 1
      elseif left == 0 then
        more = true
        return
      else
        erase(p, 'completed', found[i], f)
        left, expired = left - 1, expired + 1
      end
    end
    if #found == 0 then return end
  end
end

local function archived_at(f, score)
  local own = f and tonumber(f.failed_at or '')
  if own and floor(own / 1000000) == tonumber(score) then return own end
  return tonumber(score) * 1000000
end

local function trim_archive(p, most, age, spare)
  local excess = call('ZCARD', p .. 'archived') - most
  local rank, place = 0, 0
  while true do
    local found = call('ZRANGE', p .. 'archived', rank, rank + STEP - 1, 'WITHSCORES')
    for i = 1, #found, 2 do
      local f = load(p .. 't:' .. found[i])
      if place >= excess and archived_at(f, found[i + 1]) + age > now then return end
      place = place + 1
      if spare and f and f.recorded ~= found[i + 1] then
        rank = rank + 1
      elseif left == 0 then
        more = true
        return
      else
        erase(p, 'archived', found[i], f)
        left, trimmed = left - 1, trimmed + 1
      end
    end
    if #found == 0 then return end
  end
end

for i = 3, #ARGV, 4 do
  sweep_completed(ARGV[i])
  trim_archive(ARGV[i], tonumber(ARGV[i + 1]), tonumber(ARGV[i + 2]), ARGV[i + 3] == '1')
end
return { now_text, expired, trimmed, more and '1' or '' }
