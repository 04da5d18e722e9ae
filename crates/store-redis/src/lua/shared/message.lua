-- Shared: the few things that scripts must read and write inside a protobuf message.
--
-- Invariant: what is not asked for stays as it is, byte for byte, fields that nobody knows included; fields come in
-- ascending order.

local function varint(s, at)
  local value, scale = 0, 1
  while true do
    local b = byte(s, at)
    if not b then return nil end
    at = at + 1
    if b < 128 then return value + b * scale, at end
    value = value + (b - 128) * scale
    scale = scale * 128
  end
end

local function to_varint(n)
  local out = ''
  while n >= 128 do
    out = out .. char(n % 128 + 128)
    n = floor(n / 128)
  end
  return out .. char(n)
end

-- The field at this place: its number, its value, and where the next one begins. None where the bytes are no message.
local function field_at(s, at)
  local tag, body = varint(s, at)
  if not tag then return nil end
  local number, kind = floor(tag / 8), tag % 8
  if kind == 0 then
    local value, after = varint(s, body)
    return value and number, value, after
  end
  local size = kind == 1 and 8 or kind == 5 and 4
  if kind == 2 then
    size, body = varint(s, body)
  end
  if not size or body + size - 1 > #s then return nil end
  return number, sub(s, body, body + size - 1), body + size
end

-- The value of a field; none when it is not there.
local function field(s, wanted)
  local at, found = 1, nil
  while at <= #s do
    local number, value, after = field_at(s, at)
    if not number then return found end
    if number == wanted then found = value end
    at = after
  end
  return found
end

-- The message with these fields replaced; 0 and '' take one away.
local function rewrite(s, set)
  local numbers, out, next_set, at = {}, {}, 1, 1
  for number in pairs(set) do numbers[#numbers + 1] = number end
  table.sort(numbers)
  local function put_below(limit)
    while numbers[next_set] and numbers[next_set] < limit do
      local number = numbers[next_set]
      local value = set[number]
      if type(value) == 'number' then
        if value > 0 then out[#out + 1] = char(number * 8) .. to_varint(value) end
      elseif value ~= '' then
        out[#out + 1] = char(number * 8 + 2) .. to_varint(#value) .. value
      end
      next_set = next_set + 1
    end
  end
  while at <= #s do
    local number, _, after = field_at(s, at)
    if not number then break end
    put_below(number)
    if set[number] == nil then out[#out + 1] = sub(s, at, after - 1) end
    at = after
  end
  put_below(16)
  return table.concat(out)
end

-- The lines of our own header: `s:knowledge/kn_42` and the like; '' when there are none.
local OURS = '\10\10poolwright\18'
local function notes(msg)
  if not msg or not find(msg, OURS, 1, true) then return '' end
  local at = 1
  while at <= #msg do
    local number, value, after = field_at(msg, at)
    if not number then return '' end
    if number == 15 and sub(value, 1, #OURS) == OURS then
      local size, from = varint(value, #OURS + 1)
      return size and sub(value, from, from + size - 1) or ''
    end
    at = after
  end
  return ''
end

-- An entry of the index ends with a word and this; its note begins with a letter, since every pending task carries it.
local ENTRIES = { ['s:'] = 'subject:', ['c:'] = 'scope:' }

-- Whether a message says that its task belongs to this entry, `subject:...` or `scope:...`.
local function says(msg, entry)
  for letter, word in pairs(ENTRIES) do
    if sub(entry, 1, #word) == word then
      local note = letter .. sub(entry, #word + 1)
      return find('\n' .. notes(msg) .. '\n', '\n' .. note .. '\n', 1, true) ~= nil
    end
  end
  return false
end
