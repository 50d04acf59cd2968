-- One member's heartbeat. KEYS: the members, each scored by when it counts as dead. ARGV: the
-- member, how long it lives, the longest that any member may live. Times are milliseconds of
-- Redis's clock.
--
-- Returns the number of live members, and 1 if this one was not among them.
local clock = redis.call('TIME')
local now = tonumber(clock[1]) * 1000 + math.floor(tonumber(clock[2]) / 1000)
local longest = tonumber(ARGV[3])
redis.call('ZREMRANGEBYSCORE', KEYS[1], '-inf', now)
redis.call('ZREMRANGEBYSCORE', KEYS[1], '(' .. string.format('%.0f', now + longest), '+inf') -- from before the clock was set back
local new = redis.call('ZADD', KEYS[1], now + tonumber(ARGV[2]), ARGV[1])
redis.call('PEXPIRE', KEYS[1], longest)
return {redis.call('ZCARD', KEYS[1]), new}
