-- A page of a set that is ordered by a time: scheduled and retry from the earliest on, archived and completed from the latest.
--
-- KEYS      the set
-- ARGV      time; prefix; set; how many at most; '1' when it goes backwards; score and id of the last one shown, or ''
-- Returns   the time; tasks as shown; score and id of the last place looked at, or '' when nothing follows
-- Protects  the page goes on from a place, not from a count.

local p, set, most, back = ARGV[2], ARGV[2] .. ARGV[3], tonumber(ARGV[4]), ARGV[5] == '1'
local card = call('ZCARD', set)

-- How many members come before this place, itself not counted. Members of one score are ordered by their bytes.
local function rank_of(score, id)
  local low = call('ZCOUNT', set, '-inf', '(' .. score)
  local high = low + call('ZCOUNT', set, score, score)
  while low < high do
    local middle = floor((low + high) / 2)
    if call('ZRANGE', set, middle, middle)[1] < id then low = middle + 1 else high = middle end
  end
  return low
end

local from, till = 0, most
if ARGV[6] ~= '' then
  from = rank_of(ARGV[6], ARGV[7])
  if not back and call('ZRANGE', set, from, from)[1] == ARGV[7] then from = from + 1 end
elseif back then
  from = card
end
local found
if back then
  found = from > 0 and call('ZREVRANGE', set, card - from, card - from + most, 'WITHSCORES') or {}
else
  found = call('ZRANGE', set, from, from + most, 'WITHSCORES')
end
local out, last = {}, nil
for i = 1, math.min(#found, 2 * most), 2 do
  local f = load(p .. 't:' .. found[i])
  if f and f.msg then
    f.state = ARGV[3]
    out[#out + 1] = show(p, found[i], f)
  end
  last = i
end
if #found <= 2 * most or not last then return { now_text, out, '', '' } end
return { now_text, out, found[last + 1], found[last] }
