-- Makes due tasks pending: scheduled and retry, in each queue the earliest first.
--
-- KEYS      one key of each queue
-- ARGV      time; how many at most; then the prefixes
-- Returns   the time; how many; the second at which the next one is due, or ''; numbers of the queues that got something
-- Protects  an id is in one list. One that has no task any more blocks nothing (asynq makes a ghost of it). A task of a group
--           goes back to its group, which is registered (asynq forgets that, and nobody sees it again).

local left = tonumber(ARGV[2])
local moved, next_due = 0, nil

local function first(key)
  local got = call('ZRANGE', key, 0, 0, 'WITHSCORES')
  if got[1] then return got[1], tonumber(got[2]) end
end

local function move(p, list, id)
  call('ZREM', p .. list, id)
  local f, wrong = load(p .. 't:' .. id)
  if not f or not f.msg then
    set_aside(p, id, f, wrong or ('the id was in ' .. list .. ', and there is no message for it'))
  elseif f.group and f.group ~= '' then
    call('ZADD', p .. 'g:' .. f.group, now_s, id)
    call('SADD', p .. 'groups', f.group)
    forget(p, id)
    call('HSET', p .. 't:' .. id, 'state', 'aggregating')
  else
    wait(p, id, f)
  end
end

-- Sets that a Go server took to put together and did not finish in time go back to their group, which is registered (asynq
-- forgets that, and nobody sees them again).
local function reclaim(p)
  for _, set in ipairs(call('ZRANGEBYSCORE', p .. 'aggregation_sets', '-inf', now_s)) do
    local group = sub(set, 1, #p + 2) == p .. 'g:' and string.match(sub(set, #p + 3), '^(.*):[^:]*$')
    if group then
      local members = call('ZRANGE', set, 0, -1, 'WITHSCORES')
      for i = 1, #members, 2 do call('ZADD', p .. 'g:' .. group, members[i + 1], members[i]) end
      if #members > 0 then call('SADD', p .. 'groups', group) end
      call('DEL', set)
    end
    call('ZREM', p .. 'aggregation_sets', set)
  end
end

-- Whether a scheduled task has what such tasks have, and nothing else: then it is only moved. Go's has no time of its own.
local function is_plain(key)
  local fields = pcall('HLEN', key)
  if fields ~= 2 and fields ~= 3 then return false end
  local got = call('HMGET', key, 'msg', 'state', 'enqueued_at')
  local is_timed = got[3] ~= false
  return got[1] and got[1] ~= '' and got[2] == 'scheduled' and is_timed == (fields == 3), not is_timed
end

-- Moves the first due ones together where all of them are plain and no retry is due; whether there may be more.
local STEP = 500
local function move_together(p)
  local _, retry_due = first(p .. 'retry')
  if retry_due and retry_due <= now_s then return false end
  local ids = call('ZRANGEBYSCORE', p .. 'scheduled', '-inf', now_s, 'LIMIT', 0, math.min(STEP, left))
  if #ids < 2 then return false end
  local keys, untimed = {}, {}
  for i, id in ipairs(ids) do
    local plain
    keys[i] = p .. 't:' .. id
    plain, untimed[i] = is_plain(keys[i])
    if not plain then return false end
  end
  call('ZREM', p .. 'scheduled', unpack(ids))
  call('LPUSH', p .. 'pending', unpack(ids))
  local since = nanos(now)
  for i, key in ipairs(keys) do
    if untimed[i] then
      call('HSET', key, 'state', 'pending', 'pending_since', since, 'enqueued_at', now_text)
    else
      call('HSET', key, 'state', 'pending', 'pending_since', since)
    end
  end
  woken[p] = true
  left, moved = left - #ids, moved + #ids
  return #ids == STEP
end

for i = 3, #ARGV do
  local p = ARGV[i]
  reclaim(p)
  call('LLEN', p .. 'pending')
  while left > 0 and move_together(p) do end
  while true do
    local id, due = first(p .. 'scheduled')
    local other, other_due = first(p .. 'retry')
    local list = 'scheduled'
    if other and (not id or other_due < due or (other_due == due and other < id)) then
      id, due, list = other, other_due, 'retry'
    end
    if not id then break end
    if due * 1000000 > now or left == 0 then
      if not next_due or due < next_due then next_due = due end
      break
    end
    move(p, list, id)
    left, moved = left - 1, moved + 1
  end
end
return { now_text, moved, next_due and text(next_due) or '', woken_among(3, #ARGV) }
