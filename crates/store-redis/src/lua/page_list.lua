-- A page of the pending or the active list, from its left end on: what came last.
--
-- KEYS      the list
-- ARGV      time; prefix; list; how many at most; where the last page ended: its place from the right end, or ''; number of ids
--           that came next then; these ids; the ids that were shown last, latest first
-- Returns   the time; tasks as shown; ids that come next; places from the right end that are left
-- Protects  what comes or goes meanwhile neither repeats nor hides what stays: the page goes on at the first of the next ids
--           that is still there, else behind the last of those that were shown.

local p, list, most = ARGV[2], ARGV[2] .. ARGV[3], tonumber(ARGV[4])
local AHEAD, WINDOW = 24, 2000
local length = call('LLEN', list)

-- The place of the first of these ids that is there, counted from the left. It is looked for near where it was, then everywhere.
local function find_any(ids, around)
  local from = math.max(0, around - WINDOW)
  local near = call('LRANGE', list, from, around + WINDOW)
  local places = {}
  for i, id in ipairs(near) do places[id] = from + i - 1 end
  for _, id in ipairs(ids) do
    if places[id] then return places[id] end
  end
  for _, id in ipairs(ids) do
    local place = call('LPOS', list, id)
    if place then return place end
  end
end

local function begin()
  if ARGV[5] == '' then return 0 end
  local around, next_ids, shown = length - tonumber(ARGV[5]), {}, {}
  local count_next = tonumber(ARGV[6])
  for i = 7, 6 + count_next do next_ids[#next_ids + 1] = ARGV[i] end
  for i = 7 + count_next, #ARGV do shown[#shown + 1] = ARGV[i] end
  local place = find_any(next_ids, around)
  if place then return place end
  place = find_any(shown, around)
  if place then return place + 1 end
  return math.max(0, around)
end

local from = begin()
local ids = call('LRANGE', list, from, from + most + AHEAD - 1)
local out, ahead = {}, {}
for i, id in ipairs(ids) do
  if i > most then
    ahead[#ahead + 1] = id
  else
    local f = load(p .. 't:' .. id)
    if f and f.msg then
      f.state = ARGV[3]
      out[#out + 1] = show(p, id, f)
    end
  end
end
return { now_text, out, ahead, length - from - math.min(most, #ids) }
