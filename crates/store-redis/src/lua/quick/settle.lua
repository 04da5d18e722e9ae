-- Before `settle.lua`: ends together the tasks that are done and of which nothing is kept. What is not theirs or more than that is
-- left to the general way, as `rest`.

local queues = tonumber(ARGV[2])
local out, rest = { now_text }, {}

-- The settlements by queue, those of the general way apart. Of an id that comes twice the second is looked at once the first is
-- done.
local function sorted_out()
  local groups, met, at, nth = {}, {}, 3 + queues, 0
  while at <= #ARGV do
    local head, kind = ARGV[at], ''
    local q = tonumber(head)
    if not q then q, kind = tonumber(sub(head, 1, -2)), sub(head, -1) end
    local p = ARGV[2 + q]
    local key = p .. 't:' .. ARGV[at + 1]
    nth = nth + 1
    if kind == '+' or met[key] then
      rest[#rest + 1] = { nth = nth, at = at, p = p }
    else
      local group = groups[q]
      if not group then
        group = { p = p, ids = {}, keys = {}, ats = {}, nths = {} }
        groups[q] = group
      end
      local i = #group.ids + 1
      group.ids[i], group.keys[i], group.ats[i], group.nths[i] = ARGV[at + 1], key, at, nth
    end
    met[key] = true
    at = at + (kind == '+' and 10 or kind == 'i' and 6 or 4)
  end
  return groups
end

-- Of a group those that end here: the token is the holder's, and so is the score of the lease, which a Go worker that takes a task
-- over changes. A lease that was made longer meanwhile, or a follow-up, is for the general way.
local function ending(group)
  local p, ends = group.p, { ids = {}, keys = {}, ats = {} }
  local scores = call('ZMSCORE', p .. 'lease', unpack(group.ids))
  for i, key in ipairs(group.keys) do
    local at, got = group.ats[i], pcall('HMGET', key, 'token', 'again')
    if got[1] == ARGV[at + 2] and not got[2] and scores[i] == ARGV[at + 3] then
      local n = #ends.ids + 1
      ends.ids[n], ends.keys[n], ends.ats[n] = group.ids[i], key, at
      out[1 + group.nths[i]] = 'gone'
    else
      out[1 + group.nths[i]] = false
      rest[#rest + 1] = { nth = group.nths[i], at = at, p = p }
    end
  end
  return ends
end

local function place_of(key)
  local lease = call('HGET', key, 'lease')
  return lease and tonumber(string.match(lease, '%d+$'))
end

local function end_together(p, ends)
  if #ends.ids == 0 then return end
  leave_active_together(p, ends.ids, function(i) return place_of(ends.keys[i]) end)
  call('DEL', unpack(ends.keys))
  for _, at in ipairs(ends.ats) do
    count(p, false)
    if sub(ARGV[at], -1) == 'i' then
      for entry in string.gmatch(ARGV[at + 5], '[^\n]+') do pcall('ZREM', p .. entry, ARGV[at + 4]) end
    end
  end
end

do
  local groups, all = sorted_out(), {}
  for q, group in pairs(groups) do all[q] = ending(group) end
  -- A key of a wrong type says so before anything is written.
  for q, group in pairs(groups) do call('LLEN', group.p .. 'active') end
  if #rest > 0 then
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
  for q, ends in pairs(all) do end_together(groups[q].p, ends) end
  if #rest == 0 then
    write_counts()
    out[#out + 1] = {}
    return out
  end
  table.sort(rest, function(a, b) return a.nth < b.nth end)
end

