-- Returns how many processes other than the given one want permits of a semaphore, up to 16: those
-- that wait, in KEYS[2], and those that were denied lately, in KEYS[3], each scored by the time until
-- which that counts.
local function whole(x) return string.format('%.0f', x) end

local function others(process, now)
  local n = 0
  for i = 2, 3 do
    for _, other in ipairs(redis.call('ZRANGEBYSCORE', KEYS[i], '(' .. whole(now), '+inf', 'LIMIT', 0, 9)) do
      if other ~= process then n = n + 1 end
    end
  end
  return math.min(n, 16)
end
