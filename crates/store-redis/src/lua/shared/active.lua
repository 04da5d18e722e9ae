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
  local list, gone, matched = p .. 'active', nil, 0
  if n > 3 then
    local tail = call('LRANGE', list, -n, -1)
    local last = #tail
    while matched < last and tail[last - matched] == ids[first + matched] do matched = matched + 1 end
    if matched == last then
      call('LTRIM', list, 0, -last - 1)
    else
      -- They come from the end, and what stays of them goes back to it.
      local kept = {}
      gone = {}
      for i = 1, matched do gone[i] = true end
      for i = last - matched, 1, -1 do
        if tail[i] == ids[first + matched] then
          matched = matched + 1
          gone[matched] = true
        else
          kept[#kept + 1] = tail[i]
        end
      end
      if 2 * #kept <= last then
        local back, count = {}, #kept
        for i = 1, count do back[i] = kept[count + 1 - i] end
        call('LTRIM', list, 0, -last - 1)
        call('RPUSH', list, unpack(back))
      else
        gone, matched = nil, 0
      end
    end
  end
  if matched < n then
    for i = 1, n do
      if not (gone and gone[i] or not gone and i <= matched) then
        call('LREM', list, is_young(p, place_of(i)) and 1 or -1, ids[first + i - 1])
      end
    end
  end
  call('ZREM', p .. 'lease', unpack(ids, first, first + n - 1))
end
