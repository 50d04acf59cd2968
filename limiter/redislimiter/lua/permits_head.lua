-- Head of the scripts for permits like those of Redisson's RRateLimiter. KEYS: the rate, the
-- takes of all clients, the takes of the caller's client.
--
-- The rate is a hash: permits (rate) per microseconds (interval), whether each client has its own
-- (client: 1), the unused milliseconds after which it expires (keep, 0 for never), an identifier
-- of the time when takes were last voided (epoch), and the interval as it was given, for readers
-- (per). Takes are a sorted set: "permits id" scored by the instant, and "+epoch" scored by minus
-- the sum of permits. So a decision need not read all of them, and a state of another epoch is
-- known to be void. Times are microseconds of Redis's clock.
--
-- No call reads or removes many more than FINE entries. Beyond that, takes within a FINE-th of
-- the interval share an entry, which ends with the last of them, so there are at most twice
-- FINE.
local CONFIG, SHARED, OWN = KEYS[1], KEYS[2], KEYS[3]
local FINE = 1000
local clock = redis.call('TIME')
local real = tonumber(clock[1]) * 1000000 + tonumber(clock[2])

local function whole(x) return string.format('%.0f', x) end
local function count(member) return tonumber(string.match(member, '^%d+')) or 0 end

-- Returns the configuration, or nil if there is none or it is damaged.
local function config()
  local c = redis.call('HMGET', CONFIG, 'rate', 'interval', 'client', 'keep', 'epoch')
  local rate, interval = tonumber(c[1]), tonumber(c[2])
  if not rate or not interval or rate < 1 or interval < 1 or not c[3] or not c[5] then return nil end
  return {rate = rate, interval = interval, client = c[3], keep = tonumber(c[4]) or 0, epoch = c[5]}
end

-- Returns the state under a configuration, without takes older than an interval.
local function open(c)
  local s = {key = c.client == '1' and OWN or SHARED, total = '+' .. c.epoch, now = real}
  local total = redis.call('ZSCORE', s.key, s.total)
  if not total then -- nothing was taken, or only under another rate
    redis.call('DEL', s.key)
    s.used = 0
    return s
  end
  s.used = -tonumber(total)
  s.newest, s.at = unpack(redis.call('ZRANGE', s.key, -1, -1, 'WITHSCORES'))
  local newest = tonumber(s.at)
  if newest > real + 60000000 then -- another clock: all takes move with it
    for _, member in ipairs(redis.call('ZRANGEBYSCORE', s.key, '(0', '+inf')) do
      redis.call('ZINCRBY', s.key, whole(real - newest), member)
    end
    newest = real
  end
  s.at = newest
  s.now = math.max(real, newest) -- a clock that went back a little has to catch up
  local over = whole(s.now - c.interval)
  if newest <= s.now - c.interval then
    redis.call('DEL', s.key)
    s.used, s.newest = 0, nil
    return s
  end
  local back = redis.call('ZRANGEBYSCORE', s.key, '(0', over, 'LIMIT', 0, FINE)
  if #back > 0 then
    local sum = 0
    for _, member in ipairs(back) do sum = sum + count(member) end
    redis.call('ZREM', s.key, unpack(back))
    redis.call('ZINCRBY', s.key, sum, s.total)
    s.used = s.used - sum
  end
  return s
end

-- Sets the expiry of the state to a minute after it becomes a new object's, in case the clock is
-- set back. A state shared by all clients lives at most as long as its rate, whose life only a
-- script that knows its key can extend.
local function stay(c, s)
  local life = math.ceil(c.interval / 1000) + 60000
  local left = redis.call('PTTL', CONFIG)
  if s.key == SHARED and left > 0 then life = math.min(life, left) end
  redis.call('PEXPIRE', s.key, whole(life))
end

-- Extends the life of an object in use.
local function touch(c, s, yet)
  if c.keep > 0 then redis.call('PEXPIRE', CONFIG, whole(c.keep + math.ceil(yet / 1000))) end
  stay(c, s)
end
