-- Shared: storing a new task, and ending one, which may store its follow-up.
--
-- A new task `t`: id, msg, when ('now', 'after', 'at'), time (microseconds), lock (its whole key or ''), lasts
-- (microseconds), bare (the message without its lock, for a follow-up).

local function due_of(t)
  local due
  if t.when == 'after' then
    due = now + t.time
  elseif t.when == 'at' then
    due = t.time
  end
  if due and due > now then return second(due) end
end

-- Stores a task that is new here; its id is free, and so is its lock.
local function store(p, t)
  local key, due = p .. 't:' .. t.id, due_of(t)
  local state = due and 'scheduled' or 'pending'
  -- First its place: where that is full memory or a key of a wrong type, it is refused, and nothing has happened.
  if due then
    call('ZADD', p .. state, due, t.id)
    call('HSET', key, 'msg', t.msg, 'state', state, 'enqueued_at', now_text)
  else
    call('LPUSH', p .. state, t.id)
    call('HSET', key, 'msg', t.msg, 'state', state, 'pending_since', nanos(now))
  end
  if t.lock ~= '' then
    call('HSET', key, 'unique_key', t.lock)
    local over = (due and due * 1000000 or now) + t.lasts
    if over > now then call('SET', t.lock, t.id, 'PXAT', text(ceil(math.min(over, FAR) / 1000))) end
  end
  index(p, t.id, t.msg)
  woken[p] = true
  return state
end

-- Ends a task that was taken out of its place and is not kept: its follow-up takes its place, if it has one. It cannot be
-- refused any more, since its enqueue was answered: without its lock it runs all the same.
local function end_gone(p, id, f)
  unlock(p, id, f)
  unindex(p, id, f.msg)
  call('DEL', p .. 't:' .. id)
  if f.again then
    local t = cmsgpack.unpack(f.again)
    if t.lock ~= '' and holder_of(p, t.lock) then
      t.lock, t.msg = '', t.bare
    end
    store(p, t)
  end
end
