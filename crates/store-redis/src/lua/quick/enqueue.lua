-- Before `enqueue.lua`: stores plain tasks of which no id is taken, all together. Whatever else is among them, nothing has been
-- written, and the general way takes them all.

local function stored_together()
  local queues = tonumber(ARGV[4])
  local at, keys, messages, entries, ids = 5 + queues, {}, {}, {}, {}
  if ARGV[3] == '1' then return nil end
  while at <= #ARGV do
    local head, id = ARGV[at], ARGV[at + 1]
    local q = tonumber(head)
    local plain = q ~= nil
    if not plain then
      if sub(head, -1) ~= 'i' then return nil end
      q = tonumber(sub(head, 1, -2))
    end
    local p = ARGV[4 + q]
    local key = p .. 't:' .. id
    keys[#keys + 1], messages[#messages + 1] = key, ARGV[at + 2]
    if not ids[q] then ids[q] = {} end
    ids[q][#ids[q] + 1] = id
    if plain then
      at = at + 3
    else
      for entry in string.gmatch(ARGV[at + 4], '[^\n]+') do
        entries[#entries + 1], entries[#entries + 2] = p .. entry, ARGV[at + 3]
      end
      at = at + 5
    end
  end
  if call('EXISTS', unpack(keys)) > 0 then return nil end
  -- A key of a wrong type says so, and a full memory, before anything is written.
  for q in pairs(ids) do call('LLEN', ARGV[4 + q] .. 'pending') end
  if ARGV[2] == '1' then
    for i = 1, queues do call('SADD', 'asynq:queues', sub(ARGV[4 + i], 8, -3)) end
  end
  -- An entry without its task is nothing to a reader.
  for i = 1, #entries, 2 do call('ZADD', entries[i], 0, entries[i + 1]) end
  local woken = {}
  for q, all in pairs(ids) do
    call('LPUSH', ARGV[4 + q] .. 'pending', unpack(all))
    woken[#woken + 1] = q - 1
  end
  local out, since = { now_text }, nanos(now)
  for i = 1, #keys do
    call('HSET', keys[i], 'msg', messages[i], 'state', 'pending', 'pending_since', since)
    out[#out + 1] = 1
  end
  out[#out + 1] = woken
  return out
end

local stored = stored_together()
if stored then return stored end

