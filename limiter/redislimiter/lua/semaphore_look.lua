-- Looks after leases of a semaphore that a process keeps for its next requests, and at who wants
-- their permits. KEYS: the leases; the waiting processes; the denied processes. ARGV: the process,
-- '1' if it has waiters, how long it then counts as waiting, then its leases.
--
-- Returns how many other processes want permits, the permits held now, and for each lease 1 if it is
-- there, else 0.
local clock = redis.call('TIME')
local now = tonumber(clock[1]) * 1000000 + tonumber(clock[2])
local leases, waiting, process, ttl = KEYS[1], KEYS[2], ARGV[1], tonumber(ARGV[3])
if ARGV[2] == '1' then
  -- The score is also its place among the waiting processes, so it stays until it is about to end.
  local known = redis.call('ZSCORE', waiting, process)
  if not known or tonumber(known) < now + ttl / 4 then
    want(waiting, process, now, ttl)
  end
else
  redis.call('ZREM', waiting, process)
end
local answer = {others(process, now), redis.call('ZCARD', leases)}
for i = 4, #ARGV do
  answer[#answer + 1] = redis.call('ZSCORE', leases, ARGV[i]) and 1 or 0
end
return answer
