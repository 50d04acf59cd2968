-- What scripts of a semaphore share. KEYS: the leases; the waiting processes; the denied processes.
local function whole(x) return string.format('%.0f', x) end

-- Counts a process among the waiting or the denied ones for a span.
local function want(set, process, now, span)
  redis.call('ZADD', set, whole(now + span), process)
  redis.call('PEXPIRE', set, math.ceil(span / 1000))
end

-- Returns how many other processes want permits, up to 16: those that wait, and those that were
-- denied lately, each scored by the time until which that counts.
local function others(process, now)
  local n = 0
  for i = 2, 3 do
    for _, other in ipairs(redis.call('ZRANGEBYSCORE', KEYS[i], '(' .. whole(now), '+inf', 'LIMIT', 0, 9)) do
      if other ~= process then n = n + 1 end
    end
  end
  return math.min(n, 16)
end
