-- Settles attempts, and hands out tasks to the workers that are free then. `settle` and `hand_out` are the scripts of these names,
-- as functions of their arguments.
--
-- KEYS      those of both
-- ARGV      time; how many arguments the settlements have beside it; these; those of the claim beside it
-- Returns   the time; what `settle.lua` returns; what `claim.lua` returns; an error in the place of either
-- Protects  each half is done and answered for itself, whatever becomes of the other.

local function attempt(act, args)
  local is_done, answer = try(act, args)
  if is_done then return answer end
  local why = type(answer) == 'table' and answer.err or tostring(answer)
  -- Redis before 7 puts its own words before those of the command.
  return { err = string.match(why, '%-(%u+ .*)$') or why }
end

local last = 2 + tonumber(ARGV[2])
local settled = attempt(settle, { ARGV[1], unpack(ARGV, 3, last) })
return { now_text, settled, attempt(hand_out, { ARGV[1], unpack(ARGV, last + 1) }) }
