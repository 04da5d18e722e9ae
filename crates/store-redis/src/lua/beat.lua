-- Says that a server lives.
--
-- KEYS      the record
-- ARGV      time; how long it lasts (microseconds); the record
-- Returns   the time; when it is over (microseconds)
-- Protects  what is read later shows the store's time of the heartbeat.

local over = now + tonumber(ARGV[2])
call('SET', KEYS[1], now_text .. ' ' .. text(over) .. ' ' .. ARGV[3], 'PXAT', text(ceil(math.min(over, FAR) / 1000)))
return { now_text, text(over) }
