-- Takes a permit of a semaphore, if one is available. KEYS: the leases, each scored by its end;
-- the waiting processes, each scored by the time until which it counts as waiting; the denied
-- processes, likewise. ARGV: the lease, the number of permits of the semaphore, the length of a
-- lease, the process if it waits after a denial (else ''), how long it then counts as waiting, the
-- process if it keeps leases (else ''), how long it counts as denied if it does not wait, '1' if more
-- requests of a process that keeps leases wait: then it goes last among the waiting processes.
--
-- A lease holds one permit. Times are microseconds of Redis's clock.
--
-- Returns 1 if taken, the permits held now, the number of leases that had expired, the time until the
-- next one does (-1 if there is none), and how many other processes want permits, for a process that
-- keeps leases.
local clock = redis.call('TIME')
local now = tonumber(clock[1]) * 1000000 + tonumber(clock[2])
local leases, waiting, lease = KEYS[1], KEYS[2], ARGV[1]
local permits, length = tonumber(ARGV[2]), tonumber(ARGV[3])
local waiter, waits, keeper = ARGV[4], tonumber(ARGV[5]), ARGV[6]
local longest = 600000000 -- no lease lasts longer, unless it is from before the clock was set back

local function wanted() return keeper ~= '' and others(keeper, now) or 0 end

local dropped = redis.call('ZREMRANGEBYSCORE', leases, '-inf', whole(now))
  + redis.call('ZREMRANGEBYSCORE', leases, '(' .. whole(now + longest), '+inf')
local held = redis.call('ZCARD', leases)

local known = redis.call('ZSCORE', leases, lease) -- from a call whose reply was lost
if not known and held >= permits then
  if waiter ~= '' then
    want(waiting, waiter, now, waits)
  elseif keeper ~= '' then
    redis.call('ZREMRANGEBYSCORE', KEYS[3], '-inf', whole(now))
    want(KEYS[3], keeper, now, tonumber(ARGV[7]))
  end
  local first = redis.call('ZRANGE', leases, 0, 0, 'WITHSCORES')
  return {0, held, dropped, first[2] and tonumber(first[2]) - now or -1, wanted()}
end

redis.call('ZADD', leases, whole(now + length), lease)
if not known then held = held + 1 end
local ttl = math.ceil(length / 1000) + 1
if redis.call('PTTL', leases) < ttl then redis.call('PEXPIRE', leases, ttl) end
if ARGV[8] == '1' then
  want(waiting, keeper, now, waits)
elseif waiter ~= '' then
  redis.call('ZREM', waiting, waiter)
end
return {1, held, dropped, -1, wanted()}
