-- Stores tasks, each in a whole step of its own.
--
-- KEYS      one key of each queue, for the way to its node
-- ARGV      time; '1' when the queues' names are registered here (no cluster); '1' when this was sent before and its answer
--           was lost; number of queues; their prefixes; then for each task: number of its queue, id, msg. Behind the number stands
--           'i' where the task is in the index: then follow its member and its entries, a line each. Or '+' where it is anything
--           else than a plain new task that waits, or its id comes for the second time: then follow when, time, lock, lasts,
--           on_conflict ('reject', 'replace_finished', 'run_again'), bare
-- Returns   the time; for each task 1 when it was stored and is pending, or { what, state, who }: 'stored', 'replaced',
--           'coalesced', 'again', or refused: for its 'id', for its 'lock', which `who` holds, or since a key of its own is
--           'wrong', as `who` says; numbers of the queues that got something to wait for
-- Protects  a refused task leaves no trace: id first, then lock, then the first write. A lock is taken with its task or not
--           at all (asynq takes it first and leaves it behind when the id is taken).

local resent, queues = ARGV[3] == '1', tonumber(ARGV[4])
local out = { now_text }

-- What the id meets: nothing, a task that is over, one that waits, one that runs. A hash without a message is no task; a late
-- result of asynq's leaves such a ghost, and it would block its id for ever.
local function meet(f)
  if not f or not f.msg then return 'nothing' end
  if f.state == 'archived' or f.state == 'completed' then return 'over' end
  if f.state == 'active' then return 'running' end
  if f.cancel then return 'doomed' end
  return 'waiting'
end

-- Why a task cannot be in the index: an entry's key of a wrong type.
local function unindexable(p, msg)
  local wrong
  for_index(msg, function(entry)
    local got = pcall('ZCARD', p .. entry)
    if type(got) == 'table' then wrong = got.err end
  end)
  return wrong
end

local function enqueue(p, t, on_conflict)
  local key = p .. 't:' .. t.id
  local f, met = nil, 'nothing'
  local wrong_entry = unindexable(p, t.msg)
  if wrong_entry then return { 'wrong', '', wrong_entry } end
  if call('EXISTS', key) == 1 then
    local wrong
    f, wrong = load(key)
    if wrong then return { 'wrong', '', wrong } end
    met = meet(f)
    if f and met == 'nothing' then call('DEL', key) end
  end
  if met ~= 'nothing' then
    if resent and f.msg == t.msg then return { 'stored', f.state, '' } end
    if not (on_conflict == 'run_again' or (on_conflict == 'replace_finished' and met == 'over')) then
      return { 'id', f.state, '' }
    end
    if met == 'waiting' then return { 'coalesced', f.state, '' } end
    if met == 'running' then
      call('HSET', key, 'again', cmsgpack.pack(t))
      return { 'again', f.state, '' }
    end
  end
  if t.lock ~= '' then
    local holder = holder_of(p, t.lock)
    -- Its own predecessor's lock goes with the predecessor.
    if holder and not (holder == t.id and met ~= 'nothing') then return { 'lock', '', holder } end
  end
  if met == 'nothing' then return { 'stored', store(p, t), '' } end
  leave(p, t.id, f)
  unlock(p, t.id, f)
  unindex(p, t.id, f.msg)
  call('DEL', key)
  return { 'replaced', store(p, t), '' }
end

-- A key of a wrong type says so before anything is written.
for i = 1, queues do
  call('LLEN', ARGV[4 + i] .. 'pending')
  call('ZCARD', ARGV[4 + i] .. 'scheduled')
end
if ARGV[2] == '1' then
  for i = 1, queues do call('SADD', 'asynq:queues', sub(ARGV[4 + i], 8, -3)) end
end
local at = 5 + queues
while at <= #ARGV do
  local number, kind = string.match(ARGV[at], '^(%d+)(.?)$')
  local t = { id = ARGV[at + 1], msg = ARGV[at + 2], when = 'now', time = 0, lock = '', lasts = 0, bare = '' }
  local on_conflict = 'reject'
  if kind == '+' then
    t.when, t.time, t.lock, t.lasts = ARGV[at + 3], tonumber(ARGV[at + 4]), ARGV[at + 5], tonumber(ARGV[at + 6])
    on_conflict, t.bare = ARGV[at + 7], ARGV[at + 8]
  end
  out[#out + 1] = enqueue(ARGV[4 + number], t, on_conflict)
  at = at + (kind == '+' and 9 or kind == 'i' and 5 or 3)
end
out[#out + 1] = woken_among(5, 4 + queues)
return out
