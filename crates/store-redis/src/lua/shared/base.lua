-- Shared by all scripts: the clock, numbers as text, reading a task.
--
-- ARGV[1] is the time in microseconds, or empty: then it is the server's own. So hosts with wrong clocks agree, and a test
-- can pass a clock that it moves by hand.
local call, pcall = redis.call, redis.pcall
local sub, byte, char, find, format = string.sub, string.byte, string.char, string.find, string.format
local floor, ceil = math.floor, math.ceil

-- Later than anything real, and small enough for 64 bits when printed.
local FAR = 9.2e18

local now = tonumber(ARGV[1])
if not now then
  local time = call('TIME')
  now = time[1] * 1000000 + time[2]
end
local now_s = floor(now / 1000000)

-- Whole numbers beyond 14 digits would be printed as 1.9e+15.
local function text(number)
  if number > FAR then number = FAR end
  return format('%d', number)
end

local now_text = text(now)

-- The first whole second at which a time has come.
local function second(time)
  if time > FAR then time = FAR end
  return ceil(time / 1000000)
end

-- Nanoseconds out of microseconds, as asynq writes them.
local function nanos(time) return text(time) .. '000' end

-- The queues that got something to wait for, and the numbers of those among these prefixes, for whoever watches them.
local woken = {}
local function woken_among(first, last)
  local numbers = {}
  for i = first, last do
    if woken[ARGV[i]] then numbers[#numbers + 1] = i - first end
  end
  return numbers
end

-- The fields of a task's hash; none when there is no such hash, or none that can be read: then why.
local function load(key)
  local flat = pcall('HGETALL', key)
  if flat.err then return nil, flat.err end
  if #flat == 0 then return nil end
  local fields = {}
  for i = 1, #flat, 2 do fields[flat[i]] = flat[i + 1] end
  return fields
end

local function flatten(fields)
  local flat = {}
  for name, value in pairs(fields) do
    flat[#flat + 1] = name
    flat[#flat + 1] = value
  end
  return flat
end
