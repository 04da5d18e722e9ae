-- Before `claim.lua`: hands out tasks that are as they should be, all together: what comes off the
-- pending lists begins once every one of it can run. Is one of it flagged, unreadable or given back, all goes back to where it
-- was, and the general way takes it one by one.

local lease, shared_lease, stem, again = tonumber(ARGV[2]), tonumber(ARGV[3]), ARGV[4], ARGV[5]
local queues = tonumber(ARGV[6])
local shared, first_demand = ARGV[7 + queues], 8 + queues

local function token_for(demand, nth)
  return stem .. char(floor(demand / 256), demand % 256, floor(nth / 256), nth % 256)
end

-- A task is active from now on. Since when it waited stays: its first attempt may be given back.
local function begin(key, token, lease)
  call('HSET', key, 'state', 'active', 'token', token, 'lease', lease)
end

-- The fields of a task that has more than others, its old place, and whether an attempt left something behind; none when it is
-- out of the ordinary.
local function look_at(key, is_shared)
  local flat, is_whole, place, was_run = pcall('HGETALL', key), false, nil, false
  for i = 1, #flat, 2 do
    local name = flat[i]
    if name == 'msg' then
      is_whole = true
    elseif name == 'place' then
      place, was_run = flat[i + 1], true
    elseif name == 'progress' then
      was_run = true
    elseif name == 'cancel' or name == 'again' or (is_shared and name == 'class') then
      return nil
    end
  end
  if is_whole then return flat, place, was_run end
end

-- Which demand gets which queue's next task, slot by slot, and how many each queue gives.
local function deal(left)
  local demands, from, given, slots = {}, {}, {}, 0
  for i = first_demand, #ARGV, 2 do
    local draws, width, demand = ARGV[i], 2 * ARGV[i + 1], (i - first_demand) / 2
    for first = 1, #draws, width do
      local q
      for at = first, first + width - 1, 2 do
        local drawn = byte(draws, at) * 256 + byte(draws, at + 1)
        if left[drawn] > 0 then
          q = drawn
          break
        end
      end
      if not q then break end
      left[q] = left[q] - 1
      given[q] = (given[q] or 0) + 1
      slots = slots + 1
      demands[slots], from[slots] = demand, q
    end
  end
  return demands, from, given, slots
end

-- The ids that each queue gives, off its pending list, the first in line first.
local function take_ids(given)
  local taken = {}
  for q, count in pairs(given) do
    local p = ARGV[6 + q]
    -- A key of a wrong type says so before anything is written.
    call('LLEN', p .. 'active')
    call('ZCARD', p .. 'lease')
    local last = tonumber(call('GET', p .. 'claims') or 0) or 0
    taken[q] = { tasks = p .. 't:', is_shared = sub(shared, q, q) == '1', count = 0, leases = {}, last = last }
  end
  -- This takes no memory: when that is full a script that has written may go on, and tasks can still be run.
  for q, queue in pairs(taken) do queue.ids = call('RPOP', ARGV[6 + q] .. 'pending', given[q]) end
  return taken
end

local function put_back(taken)
  for q, queue in pairs(taken) do
    local ids, count = {}, #queue.ids
    for i = 1, count do ids[i] = queue.ids[count + 1 - i] end
    for i = 1, count, 1000 do call('RPUSH', ARGV[6 + q] .. 'pending', unpack(ids, i, math.min(i + 999, count))) end
  end
end

-- Looks at all before any of them begins: their keys, what the caller gets of each, the old places of those that have one, and
-- which of them were run before.
local function look_at_all(taken, from)
  local keys, bodies, places, were_run = {}, {}, {}, {}
  for i, q in ipairs(from) do
    local queue = taken[q]
    local at = queue.count + 1
    local key = queue.tasks .. queue.ids[at]
    queue.count, keys[i] = at, key
    if pcall('HLEN', key) == 3 then
      -- Those that every pending task has, and no others.
      local got = call('HMGET', key, 'msg', 'pending_since')
      if not (got[1] and got[2]) then return nil end
      bodies[2 * i - 1], bodies[2 * i] = got[1], got[2]
    else
      local flat, place, was_run = look_at(key, queue.is_shared)
      if not flat then return nil end
      bodies[2 * i - 1], bodies[2 * i], places[i], were_run[i] = flat, '', place, was_run
    end
  end
  return keys, bodies, places, were_run
end

local function claimed_together()
  if again ~= '' then return nil end
  local left, ids, empty = {}, {}, {}
  for q = 1, queues do
    local p = ARGV[6 + q]
    left[q] = call('LLEN', p .. 'pending')
    if left[q] > 0 and call('EXISTS', p .. 'paused') == 1 then left[q] = 0 end
  end
  local demands, from, given, slots = deal(left)
  local taken = take_ids(given)
  local keys, bodies, places, were_run = look_at_all(taken, from)
  if not keys then
    put_back(taken)
    return nil
  end
  for q, queue in pairs(taken) do
    local till = now + (queue.is_shared and shared_lease or lease)
    queue.lease, queue.score, queue.count = text(till) .. ' ' .. now_text .. ' ', text(second(till)), 0
  end
  local nth, demand = 0, nil
  for i = 1, slots do
    local queue, place = taken[from[i]], places[i]
    if demands[i] ~= demand then nth, demand = 0, demands[i] end
    if not place then
      queue.last = queue.last + 1
      place = text(queue.last)
    end
    begin(keys[i], token_for(demand, nth), queue.lease .. place)
    if were_run[i] then call('HDEL', keys[i], 'place', 'progress') end
    local count, leases = queue.count, queue.leases
    leases[2 * count + 1], leases[2 * count + 2], queue.count = queue.score, queue.ids[count + 1], count + 1
    nth = nth + 1
  end
  for q = 1, queues do
    local p, queue = ARGV[6 + q], taken[q]
    if queue then
      -- Lua passes no more than some thousands of values to a command.
      for i = 1, queue.count, 1000 do
        local last = math.min(i + 999, queue.count)
        call('LPUSH', p .. 'active', unpack(queue.ids, i, last))
        call('ZADD', p .. 'lease', unpack(queue.leases, 2 * i - 1, 2 * last))
      end
      call('SET', p .. 'claims', text(queue.last))
    end
    ids[q] = queue and queue.ids or {}
    if left[q] == 0 then empty[#empty + 1] = q end
  end
  return { now_text, 0, empty, demands, from, ids, bodies, {} }
end

local claimed = claimed_together()
if claimed then return claimed end

