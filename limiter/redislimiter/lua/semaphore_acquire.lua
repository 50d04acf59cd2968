-- Takes permits of a semaphore, if they are available. KEYS: the leases, each scored by its end;
-- the waiting processes, each scored by the time until which it counts as waiting; the denied
-- processes, likewise. ARGV: the lease, its permits, the number of permits of the semaphore, the
-- length of a lease, the process if it waits after a denial (else ''), how long it then counts as
-- waiting, the process if it keeps leases (else ''), how long it counts as denied if it does not wait, '1' if more
-- requests of a process that keeps leases wait: then it goes last among the waiting processes.
--
-- A lease is named "permits id". A lease of more than one permit has some that ZCARD does not
-- count; the member "+" is scored by minus their sum, so that no lease has to be read. Times are
-- microseconds of Redis's clock.
--
-- Returns 1 if taken, the permits held now, the number of leases that had expired, the time until the
-- next one does (-1 if there is none), and how many other processes want permits, for a process that
-- keeps leases.
local clock = redis.call('TIME')
local now = tonumber(clock[1]) * 1000000 + tonumber(clock[2])
local leases, waiting, lease = KEYS[1], KEYS[2], ARGV[1]
local n, permits, length = tonumber(ARGV[2]), tonumber(ARGV[3]), tonumber(ARGV[4])
local longest = 600000000 -- no lease lasts longer, unless it is from before the clock was set back

local function drop(from, to)
  local over, beyond = redis.call('ZRANGEBYSCORE', leases, from, to), 0
  if #over == 0 then return 0 end
  for _, member in ipairs(over) do
    beyond = beyond + (tonumber(string.match(member, '^%d+')) or 1) - 1
  end
  redis.call('ZREMRANGEBYSCORE', leases, from, to)
  if beyond > 0 then redis.call('ZINCRBY', leases, beyond, '+') end
  return #over
end

local function wanted() return ARGV[7] ~= '' and others(ARGV[7], now) or 0 end

local dropped = drop('(0', whole(now)) + drop('(' .. whole(now + longest), '+inf')
local held = held_permits()

local known = redis.call('ZSCORE', leases, lease) -- from a call whose reply was lost
if not known and held + n > permits then
  if ARGV[5] ~= '' then
    want(waiting, ARGV[5], now, tonumber(ARGV[6]))
  elseif ARGV[7] ~= '' then
    redis.call('ZREMRANGEBYSCORE', KEYS[3], '-inf', whole(now))
    want(KEYS[3], ARGV[7], now, tonumber(ARGV[8]))
  end
  local first = redis.call('ZRANGEBYSCORE', leases, '(0', '+inf', 'WITHSCORES', 'LIMIT', 0, 1)
  return {0, held, dropped, first[2] and tonumber(first[2]) - now or -1, wanted()}
end

redis.call('ZADD', leases, whole(now + length), lease)
if not known then
  held = held + n
  if n > 1 then redis.call('ZINCRBY', leases, 1 - n, '+') end
end
local ttl = math.ceil(length / 1000) + 1
if redis.call('PTTL', leases) < ttl then redis.call('PEXPIRE', leases, ttl) end
if ARGV[9] == '1' then
  want(waiting, ARGV[7], now, tonumber(ARGV[6]))
elseif ARGV[5] ~= '' then
  redis.call('ZREM', waiting, ARGV[5])
end
return {1, held, dropped, -1, wanted()}
