-- Shared: out of the active list, where the oldest sit at the right end.

-- Whether an entry is looked for from the left: where its place among the claimed ones is known, from the end that it sits
-- nearer to.
local claimed_of = {}
local function is_young(p, place)
  if not place then return false end
  local known = claimed_of[p]
  if not known then
    known = { last = tonumber(call('GET', p .. 'claims') or 0), length = call('LLEN', p .. 'active') }
    claimed_of[p] = known
  end
  return known.last - place < known.length / 2
end

-- Takes an id out of the active ones.
local function leave_active(p, id, place)
  call('LREM', p .. 'active', is_young(p, place) and 1 or -1, id)
  call('ZREM', p .. 'lease', id)
end

-- Takes many out of the active list. Those that began first are mostly those that end first: then they are its end, and it is
-- cut off in one piece, what stays of it put back.
local function leave_active_together(p, ids, place_of)
  local list, gone = p .. 'active', {}
  if #ids > 3 then
    local leaves, kept, tail = {}, {}, call('LRANGE', list, -#ids, -1)
    for _, id in ipairs(ids) do leaves[id] = true end
    for _, id in ipairs(tail) do
      if leaves[id] then gone[id] = true else kept[#kept + 1] = id end
    end
    if 2 * #kept <= #tail then
      call('LTRIM', list, 0, -#tail - 1)
      if #kept > 0 then call('RPUSH', list, unpack(kept)) end
    else
      gone = {}
    end
  end
  for at, id in ipairs(ids) do
    if not gone[id] then call('LREM', list, is_young(p, place_of(at)) and 1 or -1, id) end
  end
  call('ZREM', p .. 'lease', unpack(ids))
end
