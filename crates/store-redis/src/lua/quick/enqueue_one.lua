-- Before everything else of `enqueue.lua`: a single plain task whose id is free. Nothing but its own commands is made for it.
if #ARGV == 8 and ARGV[6] == '1' and ARGV[3] == '' then
  local call, p, at = redis.call, ARGV[5], ARGV[1]
  local key = p .. 't:' .. ARGV[7]
  if call('EXISTS', key) == 0 then
    if at == '' then
      local time = call('TIME')
      at = string.format('%s%06d', time[1], time[2])
    end
    -- A key of a wrong type says so, and a full memory, before anything is written.
    call('LLEN', p .. 'pending')
    if ARGV[2] == '1' then call('SADD', 'asynq:queues', string.sub(p, 8, -3)) end
    call('LPUSH', p .. 'pending', ARGV[7])
    call('HSET', key, 'msg', ARGV[8], 'state', 'pending', 'pending_since', at .. '000')
    return { at, 1, { 0 } }
  end
end

