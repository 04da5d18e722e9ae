-- What people do to tasks by hand: run now, archive, delete; one task, or the first ones of a state.
--
-- KEYS      a key of the queue
-- ARGV      time; prefix; 'run_now', 'archive' or 'delete'; states that it takes, each followed by a comma; reason; beginning of
--           all tokens (12 bytes); then 'one', id, or 'many', state, how many
-- Returns   the time; 'done', 'missing' or 'wrong'; the state it was in, or how many
-- Protects  an active task is never touched; nothing here is counted.

local p, action, takes, reason, stem = ARGV[2], ARGV[3], ARGV[4], ARGV[5], ARGV[6]
local made = 0

local function act(id, f)
  local key = p .. 't:' .. id
  leave(p, id, f)
  if action == 'delete' then
    unlock(p, id, f)
    unindex(p, id, f.msg)
    call('DEL', key)
  elseif action == 'run_now' then
    wait(p, id, f)
    call('HDEL', key, 'deferrals', 'crashes', 'cancel', 'token')
  else
    made = made + 1
    local token = stem .. char(floor(made / 16777216) % 256, floor(made / 65536) % 256, floor(made / 256) % 256, made % 256)
    archive(p, id, f, 'operator', reason, token)
    call('HDEL', key, 'again')
  end
end

local function allowed(state) return find(takes, (state or '') .. ',', 1, true) ~= nil end

if ARGV[7] == 'one' then
  local f, wrong = load(p .. 't:' .. ARGV[8])
  if wrong then return redis.error_reply(wrong) end
  if not f or not f.msg or not f.state then return { now_text, 'missing', '' } end
  if not allowed(f.state) then return { now_text, 'wrong', f.state } end
  act(ARGV[8], f)
  return { now_text, 'done', f.state }
end

local state, most = ARGV[8], tonumber(ARGV[9])
if most == 0 or not allowed(state) then return { now_text, 'done', 0 } end
local ids
if state == 'pending' then
  ids = call('LRANGE', p .. state, -most, -1)
else
  ids = call('ZRANGE', p .. state, 0, most - 1)
end
local done = 0
for i = 1, #ids do
  -- The front of a queue is the right end of its list.
  local id = state == 'pending' and ids[#ids + 1 - i] or ids[i]
  local f, wrong = load(p .. 't:' .. id)
  if not f or not f.msg then
    leave(p, id, { state = state })
    set_aside(p, id, f, wrong or ('the id was in ' .. state .. ', and there is no message for it'))
  else
    -- The list decides: another program may have moved the id and died before it wrote the state.
    f.state = state
    act(id, f)
  end
  done = done + 1
end
return { now_text, 'done', done }
