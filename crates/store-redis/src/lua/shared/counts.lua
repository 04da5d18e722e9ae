-- Shared: what queues count, day by day and altogether, under asynq's names.

local DAY = 86400000000

-- Days since 1970 as 2026-11-30.
local function date(day)
  local z = day + 719468
  local era = floor(z / 146097)
  local doe = z - era * 146097
  local yoe = floor((doe - floor(doe / 1460) + floor(doe / 36524) - floor(doe / 146096)) / 365)
  local doy = doe - (365 * yoe + floor(yoe / 4) - floor(yoe / 100))
  local mp = floor((5 * doy + 2) / 153)
  local month = mp < 10 and mp + 3 or mp - 9
  local year = yoe + era * 400 + (month <= 2 and 1 or 0)
  return format('%04d-%02d-%02d', year, month, doy - floor((153 * mp + 2) / 5) + 1)
end

-- What was counted in this run and not written yet, by queue.
local tallies = {}
local function count(p, failed, times)
  local tally = tallies[p]
  if not tally then
    tally = { 0, 0 }
    tallies[p] = tally
  end
  tally[1] = tally[1] + (times or 1)
  if failed then tally[2] = tally[2] + (times or 1) end
end

local function add(key, number, lasts)
  local sum = pcall('INCRBY', key, number)
  if type(sum) == 'table' then
    -- A total that is full begins anew, as asynq's does.
    if find(sum.err, 'overflow', 1, true) then call('SET', key, number) end
  elseif lasts and sum == number then
    call('EXPIREAT', key, now_s + 90 * 86400)
  end
end

local function write_counts()
  local today = date(floor(now / DAY))
  for p, tally in pairs(tallies) do
    add(p .. 'processed:' .. today, tally[1], true)
    add(p .. 'processed', tally[1])
    if tally[2] > 0 then
      add(p .. 'failed:' .. today, tally[2], true)
      add(p .. 'failed', tally[2])
    end
  end
  tallies = {}
end
