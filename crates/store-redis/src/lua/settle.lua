-- Settles attempts, each in a whole step of its own.
--
-- KEYS      one key of each queue
-- ARGV      time; number of queues; their prefixes; number of groups; then for each group of tasks that are done, have no lock, and
--           of which nothing is kept: number of their queue, how many, '1' when they are in the index; their ids, the oldest
--           claim first; their tokens; the scores of their leases as the holder knows them; in the index: their members, and
--           their entries, a line each. Then for each other settlement: number of its queue, id, token, what ('complete', 'retry',
--           'archive', 'discard', 'release', 'hold'), microseconds (kept for, or until the retry), text (error or reason), class,
--           charge ('retry', 'deferral', 'crash', 'nothing'), result, '1' when there is a result
-- Returns   the time; for each the state in which it ended, 'gone', 'lost' or 'missing'; numbers of the queues that got
--           something to wait for
-- Protects  only the holder of an active task settles it; every exit leaves the active list and the lease set, and its lock and
--           index entries where the task ends. A settlement that was done is answered again, not done again.

-- Back to where it was: before all that came later, with the time it had. What waits at the front with a place was
-- released before.
local function release(p, id, f, lease)
  local key, pending = p .. 't:' .. id, p .. 'pending'
  forget(p, id)
  local place, before = tonumber(lease.place), {}
  while true do
    local front = call('LINDEX', pending, -1)
    local its = front and tonumber(call('HGET', p .. 't:' .. front, 'place') or '')
    if not its or its > place then break end
    before[#before + 1] = call('RPOP', pending)
  end
  call('RPUSH', pending, id)
  woken[p] = true
  for i = #before, 1, -1 do call('RPUSH', pending, before[i]) end
  local since = f.pending_since or nanos(now)
  call('HSET', key, 'state', 'pending', 'pending_since', since, 'place', lease.place)
  return 'pending'
end

local function pause(p, reason)
  if call('EXISTS', p .. 'paused') == 0 then
    call('SET', p .. 'paused', text(now_s))
    call('SET', p .. 'paused_because', now_text .. ' ' .. reason)
  end
end

local function charge(key, f, to)
  if to == 'retry' then
    call('HDEL', key, 'deferrals')
    return (field(f.msg, 6) or 0) + 1
  elseif to == 'deferral' then
    call('HINCRBY', key, 'deferrals', 1)
  elseif to == 'crash' then
    call('HINCRBY', key, 'crashes', 1)
  end
  return field(f.msg, 6) or 0
end

local function retry(p, id, f, s)
  local key = p .. 't:' .. id
  local retried = charge(key, f, s.charge)
  local msg = rewrite(f.msg, { [6] = retried, [7] = s.text, [11] = now_s })
  call('HSET', key, 'msg', msg, 'class', s.class, 'failed_at', now_text)
  if s.class == 'cancelled' then call('HDEL', key, 'cancel') end
  if s.micros > 0 then
    wait_until(p, id, f, 'retry', second(now + s.micros))
    return 'retry'
  end
  wait(p, id, f)
  return 'pending'
end

local function complete(p, id, f, s)
  local key, over, since = p .. 't:' .. id, now + s.micros, enqueued_at(f)
  if f.again then
    end_gone(p, id, f)
    return 'completed'
  end
  unlock(p, id, f)
  forget(p, id)
  call('HDEL', key, 'cancel')
  call('ZADD', p .. 'completed', second(over), id)
  call('HSET', key, 'msg', rewrite(f.msg, { [13] = now_s }), 'state', 'completed', 'completed_at', now_text, 'expires_at',
    text(over), 'enqueued_at', since)
  if s.has_result then call('HSET', key, 'result', s.result) end
  return 'completed'
end

local function settle(p, id, token, s)
  local key = p .. 't:' .. id
  local f = load(key)
  if not f or not f.msg then return 'missing' end
  if f.token ~= token then return 'lost' end
  -- With its lease it was moved by a Go worker, which leaves that behind.
  if f.state ~= 'active' then return f.lease and 'lost' or f.state end
  local lease = our_lease(p, id, f)
  if not lease then return 'lost' end
  leave_active(p, id, tonumber(lease.place))
  if s.what == 'complete' then
    count(p, false)
    if s.micros > 0 then return complete(p, id, f, s) end
    end_gone(p, id, f)
    return 'gone'
  elseif s.what == 'discard' then
    count(p, false)
    end_gone(p, id, f)
    return 'gone'
  elseif s.what == 'retry' then
    if s.charge == 'retry' then count(p, true) end
    return retry(p, id, f, s)
  elseif s.what == 'archive' then
    count(p, true)
    if f.again then end_gone(p, id, f) else archive(p, id, f, s.class, s.text, token) end
    return 'archived'
  elseif s.what == 'hold' then
    pause(p, s.text)
  end
  return release(p, id, f, lease)
end

-- What was not ended together.
for _, one in ipairs(rest) do
  out[one.nth] = settle(one.p, one.id, one.token, { what = 'complete', micros = 0 })
end
for i = others, #ARGV, 10 do
  local s = {
    what = ARGV[i + 3], micros = tonumber(ARGV[i + 4]), text = ARGV[i + 5], class = ARGV[i + 6], charge = ARGV[i + 7],
    result = ARGV[i + 8], has_result = ARGV[i + 9] == '1',
  }
  out[#out + 1] = settle(ARGV[2 + ARGV[i]], ARGV[i + 1], ARGV[i + 2], s)
end
write_counts()
out[#out + 1] = woken_among(3, 2 + queues)
return out
