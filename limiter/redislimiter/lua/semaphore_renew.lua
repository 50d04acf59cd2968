-- Renews leases of a semaphore. KEYS: the leases. ARGV: the length of a lease, then the leases.
-- An expired lease that has not been dropped yet is renewed as well: its permits are still its
-- own. Times are microseconds of Redis's clock.
--
-- Returns for each lease 1 if it was there, else 0.
local clock = redis.call('TIME')
local length = tonumber(ARGV[1])
local over = string.format('%.0f', tonumber(clock[1]) * 1000000 + tonumber(clock[2]) + length)
local answer, any = {}, false
for i = 2, #ARGV do
  if redis.call('ZSCORE', KEYS[1], ARGV[i]) then
    redis.call('ZADD', KEYS[1], over, ARGV[i])
    answer[i - 1], any = 1, true
  else
    answer[i - 1] = 0
  end
end
local ttl = math.ceil(length / 1000) + 1
if any and redis.call('PTTL', KEYS[1]) < ttl then redis.call('PEXPIRE', KEYS[1], ttl) end
return answer
