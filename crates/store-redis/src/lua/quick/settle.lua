-- Before `settle.lua`: ends together the tasks that are done and of which nothing is kept. Where one of them is not the holder's
-- any more, or more than that, it is left to the general way, as `rest`.

local queues = tonumber(ARGV[2])
local out, rest, others = { now_text }, {}, 4 + queues

-- The score of its lease tells whether it is still the lease that the holder knows: a Go worker that takes the task over changes
-- it. A follow-up is for the general way.
local function ending(p, n, ids)
  local tasks, keys, is_all = p .. 't:', {}, true
  local scores = call('ZMSCORE', p .. 'lease', unpack(ARGV, ids, ids + n - 1))
  for i = 1, n do
    local key = tasks .. ARGV[ids + i - 1]
    local got = pcall('HMGET', key, 'token', 'again')
    if got[1] == ARGV[ids + n + i - 1] and not got[2] and scores[i] == ARGV[ids + 2 * n + i - 1] then
      keys[i], out[#out + 1] = key, 'gone'
    else
      keys[i], out[#out + 1], is_all = false, '', false
      rest[#rest + 1] = { nth = #out, p = p, id = ARGV[ids + i - 1], token = ARGV[ids + n + i - 1] }
    end
  end
  return keys, is_all
end

local function place_of(key)
  local lease = call('HGET', key, 'lease')
  return lease and tonumber(string.match(lease, '%d+$'))
end

-- The index loses those that end.
local function leave_index(p, n, keys, ids)
  for i = 1, n do
    if keys[i] then
      local member, entries = ARGV[ids + 3 * n + i - 1], ARGV[ids + 4 * n + i - 1]
      if find(entries, '\n', 1, true) then
        for entry in string.gmatch(entries, '[^\n]+') do pcall('ZREM', p .. entry, member) end
      else
        pcall('ZREM', p .. entries, member)
      end
    end
  end
end

local function end_together(group)
  local p, n, keys, ids = group.p, group.n, group.keys, group.ids
  if group.in_index then leave_index(p, n, keys, ids) end
  if group.is_all then
    leave_active_together(p, ARGV, ids, n, function(i) return place_of(keys[i]) end)
  else
    local ended, ended_keys = {}, {}
    for i = 1, n do
      if keys[i] then ended[#ended + 1], ended_keys[#ended_keys + 1] = ARGV[ids + i - 1], keys[i] end
    end
    keys, n = ended_keys, #ended
    if n == 0 then return end
    leave_active_together(p, ended, 1, n, function(i) return place_of(keys[i]) end)
  end
  call('DEL', unpack(keys))
  count(p, false, n)
end

do
  local groups, at = {}, 4 + queues
  for g = 1, tonumber(ARGV[3 + queues]) do
    local p, n, in_index = ARGV[2 + ARGV[at]], tonumber(ARGV[at + 1]), ARGV[at + 2] == '1'
    local keys, is_all = ending(p, n, at + 3)
    groups[g] = { p = p, n = n, keys = keys, ids = at + 3, is_all = is_all, in_index = in_index }
    -- A key of a wrong type says so before anything is written.
    call('LLEN', p .. 'active')
    at = at + 3 + (in_index and 5 or 3) * n
  end
  others = at
  if #rest > 0 or #ARGV >= others then
    for q = 1, queues do
      local p = ARGV[2 + q]
      call('LLEN', p .. 'active')
      call('ZCARD', p .. 'lease')
      call('LLEN', p .. 'pending')
      call('ZCARD', p .. 'retry')
      call('ZCARD', p .. 'archived')
      call('ZCARD', p .. 'completed')
    end
  end
  for _, group in ipairs(groups) do end_together(group) end
  if #rest == 0 and #ARGV < others then
    write_counts()
    out[#out + 1] = {}
    return out
  end
end

