-- One member's heartbeat. KEYS: the members, each with the instant at which it counts
-- as dead. ARGV: the member, for how long it lives, the longest that any may live.
-- Times are milliseconds on Redis's clock.
-- Answers how many live, and 1 if this one was not among them.
local clock = redis.call('TIME')
local now = tonumber(clock[1]) * 1000 + math.floor(tonumber(clock[2]) / 1000)
local longest = tonumber(ARGV[3])
redis.call('ZREMRANGEBYSCORE', KEYS[1], '-inf', now)
redis.call('ZREMRANGEBYSCORE', KEYS[1], '(' .. string.format('%.0f', now + longest), '+inf') -- of before the clock was set back
local new = redis.call('ZADD', KEYS[1], now + tonumber(ARGV[2]), ARGV[1])
redis.call('PEXPIRE', KEYS[1], longest)
return {redis.call('ZCARD', KEYS[1]), new}
