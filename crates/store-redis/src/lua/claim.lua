-- Hands out pending tasks: they become active, with a token and a lease.
--
-- KEYS      the pending list of each queue
-- ARGV      time; lease in microseconds; lease where Go servers work, too; beginning of all tokens (12 bytes); the claim's id
--           (8 bytes) when it was sent before, else ''; number of queues; their prefixes; for each queue '1' when Go servers work
--           on it, too, else '0'; then for each demand: its draws, two bytes a queue, `queues of the demand` of them a slot; how many queues a draw has
-- Returns   the time; how many flagged tasks were discarded; the queues that were found empty; for each claim the number of its
--           demand; the same of its queue; for each queue the ids that were taken, in order; for each claim msg and
--           pending_since, or the list of all its fields and '' where there are others than a pending task has (the token
--           follows from the claim: its beginning, the demand, and which one of the demand's it is); numbers of the queues that
--           got something to wait for. Or, of a resent claim: the time, -1, {}, and for each { demand, queue, token, task as
--           shown }
-- Protects  whatever leaves the pending list is active with a lease, discarded, set aside or back where it was; a slot goes to
--           the first queue of its draw that has a task and is not paused.

-- What was given back because nobody here knew its type is left to Go servers for this long, and for so many in one claim: they
-- look once in about a second, and ours would always be quicker.
local HANDS_OFF, KEPT_MAX = 3000000, 100

-- What is still active under a claim whose answer was lost, in the order in which it was taken.
local function claimed_before()
  local found = {}
  for q = 1, queues do
    local p = ARGV[6 + q]
    local ids = call('LRANGE', p .. 'active', 0, -1)
    for i = #ids, 1, -1 do
      local token = call('HGET', p .. 't:' .. ids[i], 'token')
      if token and sub(token, 1, 8) == again then
        local f = load(p .. 't:' .. ids[i])
        if our_lease(p, ids[i], f) then
          found[#found + 1] = { byte(token, 13) * 256 + byte(token, 14), q, token, show(p, ids[i], f) }
        end
      end
    end
  end
  return found
end

if again ~= '' then
  local found = claimed_before()
  if #found > 0 then return { now_text, -1, {}, found } end
end

-- A queue while it is drawn from. Its keys are looked at before anything is written: a wrong type says so here.
local drawn = {}
local function open(q)
  local p = ARGV[6 + q]
  local queue = {
    p = p, left = call('LLEN', p .. 'pending'), taken = {}, next = 1, claimed = {}, leases = {},
    place = nil, last = tonumber(call('GET', p .. 'claims') or 0) or 0, kept = {}, shared = sub(shared, q, q) == '1',
  }
  queue.till = now + (queue.shared and shared_lease or lease)
  call('LLEN', p .. 'active')
  call('ZCARD', p .. 'lease')
  if call('EXISTS', p .. 'paused') == 1 then queue.left = 0 end
  drawn[q] = queue
  return queue
end

-- Given back by one of ours a moment ago, for want of a handler; what a Go server said since counts more.
local function was_given_back(f)
  if f.class ~= 'no_handler' or not f.failed_at or not f.pending_since then return false end
  if floor(tonumber(f.failed_at) / 1000000) ~= field(f.msg, 11) then return false end
  return now - tonumber(sub(f.pending_since, 1, -4)) < HANDS_OFF
end

local discarded, demands, from, bodies = 0, {}, {}, {}

-- The next task of a queue that can run; what is flagged goes, what has no record is set aside.
local function next_of(queue)
  local p = queue.p
  while true do
    local id = queue.taken[queue.next]
    if id then
      queue.next = queue.next + 1
    elseif queue.left > 0 then
      id = call('RPOP', p .. 'pending')
      queue.left = id and queue.left - 1 or 0
    end
    if not id then
      -- The follow-up of a task that was discarded may have come.
      queue.left = call('EXISTS', p .. 'paused') == 0 and call('LLEN', p .. 'pending') or 0
      if queue.left == 0 then return nil end
    else
      local f, wrong = load(p .. 't:' .. id)
      if not f or not f.msg then
        set_aside(p, id, f, wrong or 'the id was pending, and there is no message for it')
      elseif f.cancel then
        end_gone(p, id, f)
        discarded = discarded + 1
        queue.left = queue.left + (f.again and 1 or 0)
      elseif queue.shared and #queue.kept < KEPT_MAX and was_given_back(f) then
        queue.kept[#queue.kept + 1] = id
      else
        return id, f
      end
    end
  end
end

local function take(queue, q, demand, id, f, nth)
  local p, place = queue.p, f.place
  if not place then
    if not queue.place then queue.place = queue.last end
    queue.place = queue.place + 1
    place = text(queue.place)
  end
  local token = token_for(demand, nth)
  begin(p .. 't:' .. id, token, lease_text(queue.till, now_text, place))
  call('HDEL', p .. 't:' .. id, 'place', 'progress')
  queue.claimed[#queue.claimed + 1] = id
  queue.leases[#queue.leases + 1] = second(queue.till)
  queue.leases[#queue.leases + 1] = id
  local n = #from + 1
  demands[n], from[n], bodies[2 * n - 1], bodies[2 * n] = demand, q, flatten(f), ''
end

local function serve(demand, draws, width)
  local nth = 0
  for draw = 1, #draws / (2 * width) do
    local found = false
    for i = 1, width do
      local at = ((draw - 1) * width + i) * 2
      local q = byte(draws, at - 1) * 256 + byte(draws, at)
      local queue = drawn[q] or open(q)
      local id, f
      if queue.left > 0 then id, f = next_of(queue) end
      if id then
        take(queue, q, demand, id, f, nth)
        nth = nth + 1
        found = true
        break
      end
    end
    if not found then return end
  end
end

for q = 1, queues do open(q) end
for i = first_demand, #ARGV, 2 do serve((i - first_demand) / 2, ARGV[i], tonumber(ARGV[i + 1])) end

-- The ids go to the active list and the lease set by a few commands a queue. Nothing can come between: this is one step.
local empty, ids = {}, {}
for q = 1, queues do
  local queue = drawn[q]
  local p, claimed, leases = queue.p, queue.claimed, queue.leases
  ids[q] = claimed
  for i = 1, #claimed, 1000 do
    call('LPUSH', p .. 'active', unpack(claimed, i, math.min(i + 999, #claimed)))
    call('ZADD', p .. 'lease', unpack(leases, 2 * i - 1, math.min(2 * i + 1998, #leases)))
  end
  if queue.place then call('SET', p .. 'claims', text(queue.place)) end
  -- Back to the front, in the order in which they stood there.
  for i = #queue.kept, 1, -1 do call('RPUSH', p .. 'pending', queue.kept[i]) end
  if queue.left == 0 and #queue.kept == 0 then empty[#empty + 1] = q end
end
return { now_text, discarded, empty, demands, from, ids, bodies, woken_among(7, 6 + queues) }
