-- Before `claim.lua`: hands out tasks that are as they should be, all together: what is pending is looked at in place, and taken
-- once every one of them can run. Is one of them flagged, unreadable or given back, nothing has been written, and the general
-- way takes them one by one.

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

-- Which demand gets which queue's next task, slot by slot, and how many each queue gives.
local function slots_of(left)
  local demands, from, given = {}, {}, {}
  for i = first_demand, #ARGV, 2 do
    local draws, width = ARGV[i], 2 * ARGV[i + 1]
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
      demands[#demands + 1], from[#from + 1] = (i - first_demand) / 2, q
    end
  end
  return demands, from, given
end

-- A task before its claim, to be filled in; none when it is out of the ordinary.
local function look_at(demand, q, id, key)
  local fields = pcall('HLEN', key)
  if fields == 3 then
    -- Those that every pending task has, and no others.
    local got = call('HMGET', key, 'msg', 'pending_since')
    if got[1] and got[2] then return { demand, q, id, false, got[1], got[2] } end
    return nil
  end
  local flat, is_whole = pcall('HGETALL', key), false
  local claim = { demand, q, id, false, flat }
  for i = 1, #flat, 2 do
    local name = flat[i]
    if name == 'msg' then
      is_whole = true
    elseif name == 'place' then
      claim.place = flat[i + 1]
    elseif name == 'progress' then
      claim.progress = true
    elseif name == 'cancel' or (name == 'class' and sub(shared, q, q) == '1') then
      return nil
    end
  end
  return is_whole and claim or nil
end

local function claimed_together()
  if again ~= '' then return nil end
  local left = {}
  for q = 1, queues do
    left[q] = call('LLEN', ARGV[6 + q] .. 'pending')
    if left[q] > 0 and call('EXISTS', ARGV[6 + q] .. 'paused') == 1 then left[q] = 0 end
  end
  local demands, from, given = slots_of(left)
  local waiting, claims = {}, {}
  for q, count in pairs(given) do
    local p = ARGV[6 + q]
    -- A key of a wrong type says so before anything is written.
    call('LLEN', p .. 'active')
    call('ZCARD', p .. 'lease')
    waiting[q] = { ids = call('LRANGE', p .. 'pending', -count, -1), left = count }
  end
  for n, q in ipairs(from) do
    local ids = waiting[q]
    local id = ids.ids[ids.left]
    ids.left = ids.left - 1
    claims[n] = look_at(demands[n], q, id, ARGV[6 + q] .. 't:' .. id)
    if not claims[n] then return nil end
  end
  local queue_of = {}
  for q, count in pairs(given) do
    local p, ids, taken = ARGV[6 + q], waiting[q].ids, {}
    local till = now + (sub(shared, q, q) == '1' and shared_lease or lease)
    for i = 1, count do taken[i] = ids[count + 1 - i] end
    -- First what takes no memory: when that is full a script that has written may go on, and tasks can still be run.
    call('LTRIM', p .. 'pending', 0, -count - 1)
    call('LPUSH', p .. 'active', unpack(taken))
    queue_of[q] = {
      lease = text(till) .. ' ' .. now_text .. ' ', score = text(second(till)), leases = {},
      last = tonumber(call('GET', p .. 'claims') or 0),
    }
  end
  local nth, demand = 0, nil
  for _, claim in ipairs(claims) do
    local queue, id = queue_of[claim[2]], claim[3]
    local key, place = ARGV[6 + claim[2]] .. 't:' .. id, claim.place
    if claim[1] ~= demand then nth, demand = 0, claim[1] end
    claim[4] = token_for(demand, nth)
    nth = nth + 1
    if not place then
      queue.last = queue.last + 1
      place = text(queue.last)
    end
    begin(key, claim[4], queue.lease .. place)
    if claim.place or claim.progress then call('HDEL', key, 'place', 'progress') end
    local leases = queue.leases
    leases[#leases + 1], leases[#leases + 2] = queue.score, id
  end
  for q, queue in pairs(queue_of) do
    call('ZADD', ARGV[6 + q] .. 'lease', unpack(queue.leases))
    call('SET', ARGV[6 + q] .. 'claims', text(queue.last))
  end
  local empty = {}
  for q = 1, queues do
    if left[q] == 0 then empty[#empty + 1] = q end
  end
  return { now_text, 0, empty, claims, {} }
end

local claimed = claimed_together()
if claimed then return claimed end

