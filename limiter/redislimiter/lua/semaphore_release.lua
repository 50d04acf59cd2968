-- Releases permits of a semaphore, and sends a hint to the process that has waited longest. KEYS:
-- the leases; the waiting processes. ARGV: the channel, the calling process, then its leases.
-- Without leases it passes on a hint that was sent to it.
--
-- Returns the number of leases that existed, and whose turn it is: 1 the caller's, 2 no one's as
-- far as Redis knows, 0 another process's.
local leases, waiting, channel, process = KEYS[1], KEYS[2], ARGV[1], ARGV[2]
local there = 0
for i = 3, #ARGV do there = there + redis.call('ZREM', leases, ARGV[i]) end
local freed = #ARGV == 2 and 1 or there
if freed == 0 then return {0, 0} end
local clock = redis.call('TIME')
redis.call('ZREMRANGEBYSCORE', waiting, '-inf', string.format('%.0f', tonumber(clock[1]) * 1000000 + tonumber(clock[2])))
local next_ones = redis.call('ZRANGE', waiting, 0, math.min(freed, 16) - 1)
local turn = #next_ones == 0 and 2 or 0
for _, other in ipairs(next_ones) do
  redis.call('ZREM', waiting, other) -- the next permit is for the next one; a process that is denied again goes last
  if other == process then turn = 1 else redis.call('PUBLISH', channel, other .. ' ' .. leases) end
end
return {there, turn}
