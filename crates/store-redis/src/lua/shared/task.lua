-- Shared: what a task holds beside its record, and the ways in and out of its places.
--
-- `p` is a queue's prefix, `asynq:{q}:`; `f` are the fields of a task's hash as `load` gives them.
--
-- Invariant: whoever ends a task frees its lock, leaves the index and counts, in this order and in one step. An id is in the
-- one list that its state names; it is in the lease set exactly while active.

-- The whole key of the lock that a task holds; none when it holds none. asynq writes that of a grouped task to the message
-- only.
local function lock_of(p, f)
  local lock = f.unique_key
  if not lock and f.msg and f.group and find(f.msg, p .. 'unique:', 1, true) then lock = field(f.msg, 10) end
  -- A key of another queue may lie on another node.
  if lock and sub(lock, 1, #p) == p then return lock end
end

-- Who holds a lock; none when it is free. A Go peer leaves locks behind that name a task which does not hold them: taken in vain
-- for an id that was taken, or kept by one that was archived since. Such a lock goes.
local function holder_of(p, lock)
  local id = pcall('GET', lock)
  if type(id) ~= 'string' then return nil end
  local got = pcall('HMGET', p .. 't:' .. id, 'state', 'unique_key', 'msg', 'group')
  local f = { state = got[1], unique_key = got[2] or nil, msg = got[3] or nil, group = got[4] or nil }
  if f.state and f.state ~= 'archived' and f.state ~= 'completed' and lock_of(p, f) == lock then return id end
  call('DEL', lock)
  return nil
end

local function unlock(p, id, f)
  local lock = lock_of(p, f)
  if lock and pcall('GET', lock) == id then call('DEL', lock) end
end

-- An id in the index: a UUID as its 16 bytes behind a 1, which no other id begins with. That is half of what an entry costs.
local UUID = '^(%x%x%x%x%x%x%x%x)%-(%x%x%x%x)%-(%x%x%x%x)%-(%x%x%x%x)%-(%x%x%x%x%x%x%x%x%x%x%x%x)$'
local function to_member(id)
  if #id ~= 36 or find(id, '%u') then return id end
  local a, b, c, d, e = string.match(id, UUID)
  if not a then return id end
  local bytes = string.gsub(a .. b .. c .. d .. e, '%x%x', function(hex) return char(tonumber(hex, 16)) end)
  return '\1' .. bytes
end

local function from_member(member)
  if byte(member) ~= 1 then return member end
  local hex = string.gsub(sub(member, 2), '.', function(c) return format('%02x', byte(c)) end)
  return sub(hex, 1, 8) .. '-' .. sub(hex, 9, 12) .. '-' .. sub(hex, 13, 16) .. '-' .. sub(hex, 17, 20) .. '-' .. sub(hex, 21)
end

local function for_index(msg, act)
  for line in string.gmatch(notes(msg), '[^\n]+') do
    local word = ENTRIES[sub(line, 1, 2)]
    if word then act(word .. sub(line, 3)) end
  end
end

local function index(p, id, msg)
  for_index(msg, function(entry) call('ZADD', p .. entry, 0, to_member(id)) end)
end

local function unindex(p, id, msg)
  for_index(msg, function(entry) pcall('ZREM', p .. entry, to_member(id)) end)
end

-- What a lease says: until when, since when it runs, its place among the claimed ones.
local function lease_of(f)
  if not f.lease then return nil end
  local till, started, place = string.match(f.lease, '^(%d+) (%d+) (%d+)$')
  if till then return { till = tonumber(till), started = started, place = place } end
end

local function lease_text(till, started, place)
  return text(till) .. ' ' .. started .. ' ' .. place
end

-- The lease if it is one of ours and no Go worker has taken the task since: that changes the score and nothing else.
local function our_lease(p, id, f)
  local lease = f.state == 'active' and lease_of(f)
  if not lease then return nil end
  local score = call('ZSCORE', p .. 'lease', id)
  if score and tonumber(score) ~= second(lease.till) then return nil end
  return lease
end

-- Takes an id out of the place where its state says it waits or rests.
local function leave(p, id, f)
  local state = f.state
  if state == 'pending' then
    call('LREM', p .. 'pending', -1, id)
  elseif state == 'aggregating' then
    local group = f.group or ''
    call('ZREM', p .. 'g:' .. group, id)
    if call('EXISTS', p .. 'g:' .. group) == 0 then call('SREM', p .. 'groups', group) end
  elseif state == 'active' then
    leave_active(p, id)
  elseif state then
    call('ZREM', p .. state, id)
  end
end

-- Since when a task exists: until its first attempt is over that is since when it waited.
local function enqueued_at(f)
  return f.enqueued_at or (f.pending_since and sub(f.pending_since, 1, -4)) or now_text
end

-- What a task loses that leaves its state; fields that are not there are passed over.
local STATE_FIELDS = { 'lease', 'pending_since', 'place', 'completed_at', 'expires_at', 'recorded', 'seen' }
local function forget(p, id)
  call('HDEL', p .. 't:' .. id, unpack(STATE_FIELDS))
end

-- To the end of the pending ones.
local function wait(p, id, f)
  local key = p .. 't:' .. id
  local since = enqueued_at(f)
  forget(p, id)
  call('LPUSH', p .. 'pending', id)
  woken[p] = true
  call('HSET', key, 'state', 'pending', 'pending_since', nanos(now), 'enqueued_at', since)
end

-- To the scheduled ones or to retry, until this second.
local function wait_until(p, id, f, state, due_s)
  local key = p .. 't:' .. id
  local since = enqueued_at(f)
  forget(p, id)
  call('ZADD', p .. state, due_s, id)
  woken[p] = true
  call('HSET', key, 'state', state, 'enqueued_at', since)
end

-- To the archive, with what ended it. It has no lock and wants a dead letter of its own.
local function archive(p, id, f, class, error, token)
  local key = p .. 't:' .. id
  local since = enqueued_at(f)
  unlock(p, id, f)
  forget(p, id)
  call('HDEL', key, 'cancel')
  call('ZADD', p .. 'archived', now_s, id)
  local msg = rewrite(f.msg, { [7] = error, [11] = now_s })
  call('HSET', key, 'msg', msg, 'state', 'archived', 'class', class, 'failed_at', now_text, 'enqueued_at', since,
    'token', token)
end

-- Sets aside what cannot be understood: nothing of it is lost, and it stands in nobody's way.
local function set_aside(p, id, f, reason)
  local key, aside = p .. 't:' .. id, p .. 'quarantine:' .. id
  if f then
    unlock(p, id, f)
    if f.msg then unindex(p, id, f.msg) end
  end
  call('DEL', aside)
  if f then call('RENAME', key, aside) end
  call('HSET', aside, 'quarantine_reason', reason, 'quarantined_at', now_text)
  call('ZADD', p .. 'quarantined', now_s, id)
end

-- The proof that a dead letter names. Who was archived by others has one made of what is there.
local function token_of(id, f, score)
  if f.token and f.failed_at and floor(tonumber(f.failed_at) / 1000000) == tonumber(score) then return f.token end
  return sub(redis.sha1hex(id .. ' ' .. score), 1, 16)
end

-- A task as the caller gets it: id, fields, score in its list ('' where it has none).
local function show(p, id, f)
  local state, score = f.state, ''
  if state == 'active' then
    score = call('ZSCORE', p .. 'lease', id) or ''
  elseif state == 'scheduled' or state == 'retry' or state == 'archived' or state == 'completed' then
    score = call('ZSCORE', p .. state, id) or ''
    if state == 'archived' and score ~= '' then f.token = token_of(id, f, score) end
  end
  return { id, flatten(f), score }
end
