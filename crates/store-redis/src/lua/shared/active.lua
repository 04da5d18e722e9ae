-- Shared: out of the active list, where the oldest sit at the right end.

-- Whether an entry is looked for from the left: where its place among the claimed ones is known, from the end that it sits
-- nearer to.
local claimed_of = {}
local function is_young(p, place)
  if not place then return false end
  local known = claimed_of[p]
  if not known then
    local last = pcall('GET', p .. 'claims')
    known = { last = type(last) == 'string' and tonumber(last) or 0, length = call('LLEN', p .. 'active') }
    claimed_of[p] = known
  end
  return known.last - place < known.length / 2
end

-- Takes an id out of the active ones.
local function leave_active(p, id, place)
  call('LREM', p .. 'active', is_young(p, place) and 1 or -1, id)
  call('ZREM', p .. 'lease', id)
end

-- Takes `n` of these ids out of the active list, from `first` on, the oldest claim first. Those that began first are mostly those
-- that end first: then they are the list's end, and it is cut off in one piece, what stays of it put back.
local function leave_active_together(p, ids, first, n, place_of)
  local list, gone = p .. 'active', {}
  if n > 3 then
    local tail, kept, matched = call('LRANGE', list, -n, -1), {}, 0
    for i = #tail, 1, -1 do
      if tail[i] == ids[first + matched] then
        matched = matched + 1
        gone[matched] = true
      else
        kept[#kept + 1] = tail[i]
      end
    end
    if 2 * #kept <= #tail then
      call('LTRIM', list, 0, -#tail - 1)
      local back, count = {}, #kept
      for i = 1, count do back[i] = kept[count + 1 - i] end
      if count > 0 then call('RPUSH', list, unpack(back)) end
    else
      gone = {}
    end
  end
  for i = 1, n do
    if not gone[i] then call('LREM', list, is_young(p, place_of(i)) and 1 or -1, ids[first + i - 1]) end
  end
  call('ZREM', p .. 'lease', unpack(ids, first, first + n - 1))
end
