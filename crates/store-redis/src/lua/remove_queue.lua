-- Removes a queue with everything it has, a bounded part a call.
--
-- KEYS      a key of the queue
-- ARGV      time; prefix; '1' when its tasks may go with it; '1' when its name is registered here (no cluster); how many tasks a
--           call
-- Returns   the time; 'done', 'more', 'none' or 'not_empty'; how many tasks went; how many there are; how many of them run
-- Protects  a queue with active tasks stays as it is. Nothing of it survives (asynq leaves completed tasks, groups, locks,
--           counters and the flag behind).

local p, force, registered, most = ARGV[2], ARGV[3] == '1', ARGV[4] == '1', tonumber(ARGV[5])
local name = sub(p, 8, -3)
local SETS = { 'scheduled', 'retry', 'archived', 'completed' }

local function group_keys()
  local keys = {}
  for _, group in ipairs(call('SMEMBERS', p .. 'groups')) do keys[#keys + 1] = p .. 'g:' .. group end
  for _, set in ipairs(call('ZRANGE', p .. 'aggregation_sets', 0, -1)) do keys[#keys + 1] = set end
  return keys
end

local active, tasks = call('LLEN', p .. 'active'), call('LLEN', p .. 'pending')
for _, set in ipairs(SETS) do tasks = tasks + call('ZCARD', p .. set) end
for _, key in ipairs(group_keys()) do tasks = tasks + call('ZCARD', key) end
tasks = tasks + active
if registered and call('SISMEMBER', 'asynq:queues', name) == 0 and tasks == 0 then return { now_text, 'none', 0, 0, 0 } end
if active > 0 or (tasks > 0 and not force) then return { now_text, 'not_empty', 0, tasks, active } end

local gone = 0
local function erase(id)
  local f = load(p .. 't:' .. id)
  if f then
    unlock(p, id, f)
    unindex(p, id, f.msg)
    call('DEL', p .. 't:' .. id)
  end
  gone = gone + 1
end

while gone < most do
  local id = call('RPOP', p .. 'pending')
  if not id then break end
  erase(id)
end
local sets = group_keys()
for _, set in ipairs(SETS) do sets[#sets + 1] = p .. set end
for _, key in ipairs(sets) do
  while gone < most do
    local found = call('ZPOPMIN', key)
    if not found[1] then break end
    erase(found[1])
  end
end
if gone < tasks then return { now_text, 'more', gone, tasks, 0 } end

for _, id in ipairs(call('ZRANGE', p .. 'quarantined', 0, -1)) do call('DEL', p .. 'quarantine:' .. id) end
for _, key in ipairs({ 'lease', 'paused', 'paused_because', 'processed', 'failed', 'groups', 'aggregation_sets', 'quarantined',
  'claims' }) do
  call('DEL', p .. key)
end
for back = 0, 91 do
  local day = date(floor(now / DAY) - back)
  call('DEL', p .. 'processed:' .. day, p .. 'failed:' .. day)
end
if registered then call('SREM', 'asynq:queues', name) end
return { now_text, 'done', gone, tasks, 0 }
