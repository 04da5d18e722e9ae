-- Looks at keys that a walk over the key space has found, and removes what belongs to nothing.
--
-- KEYS      the keys: locks, index entries, hashes of tasks, all of one queue
-- ARGV      time; prefix
-- Returns   the time; index entries removed; locks removed; hashes removed or put back
-- Protects  what hangs on a task goes with it, whoever removed the task.

local p = ARGV[2]
local entries, locks, hashes = 0, 0, 0

local function tidy_lock(key)
  if type(pcall('GET', key)) == 'string' and not holder_of(p, key) then locks = locks + 1 end
end

local function tidy_index(key)
  local what = sub(key, #p + 1)
  local ids = pcall('ZRANGE', key, 0, -1)
  if ids.err then return end
  for _, member in ipairs(ids) do
    local msg = pcall('HGET', p .. 't:' .. from_member(member), 'msg')
    if type(msg) ~= 'string' or not says(msg, what) then
      call('ZREM', key, member)
      entries = entries + 1
    end
  end
end

local SETS = { scheduled = true, retry = true, archived = true, completed = true }
local function tidy_hash(key)
  local id, state = sub(key, #p + 3), pcall('HGET', key, 'state')
  -- Most of them.
  if (state == 'pending' or state == 'active') and call('HSTRLEN', key, 'msg') > 0 then return end
  local f = load(key)
  if not f or not f.msg then
    -- A result that was written too late: a ghost that blocks its id.
    if f and (not f.state or not SETS[f.state]) and not call('LPOS', p .. 'active', id) and not call('LPOS', p .. 'pending', id) then
      call('DEL', key)
      hashes = hashes + 1
    end
  elseif f.cancel and (f.state == 'archived' or f.state == 'completed') then
    -- A Go worker that ended it knew no flag, and whoever runs it again wants it to run.
    call('HDEL', key, 'cancel')
  elseif SETS[f.state] and not call('ZSCORE', p .. f.state, id) then
    if f.state == 'archived' or f.state == 'completed' then
      -- Trimmed by asynq's tools, which leave the hash behind.
      unlock(p, id, f)
      unindex(p, id, f.msg)
      call('DEL', key)
    else
      wait(p, id, f)
    end
    hashes = hashes + 1
  end
end

for _, key in ipairs(KEYS) do
  local rest = sub(key, #p + 1)
  if sub(rest, 1, 2) == 't:' then
    tidy_hash(key)
  elseif sub(rest, 1, 7) == 'unique:' then
    tidy_lock(key)
  else
    tidy_index(key)
  end
end
return { now_text, entries, locks, hashes }
