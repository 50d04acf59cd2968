-- Head of the scripts for permits in the manner of Redisson's RRateLimiter. KEYS: the
-- rate, a hash: how many permits (rate), in how many microseconds (interval), whether
-- each client has its own (client: 1), after how many milliseconds without use it goes
-- (keep; 0: never), which rate since it was last set anew it is (epoch), and the
-- interval as it was given, for the reader (per); what was taken by all; what was taken
-- by the caller's own client. What was taken is a sorted set: "permits id" with the
-- instant, and "+epoch" with all permits in it as a negative score, so that a decision
-- does not read them all, and a state of another epoch is seen to be void. Times are
-- microseconds on Redis's clock.
--
-- No call reads or removes more than FINE entries or so. Where there are more, what is
-- taken within a FINE-th of the interval is one entry, which is over with the last of it:
-- so there are twice FINE at most. The version before wrote one for each take: of those
-- that are over FINE are removed at a time.
local CONFIG, SHARED, OWN = KEYS[1], KEYS[2], KEYS[3]
local FINE = 1000
local clock = redis.call('TIME')
local real = tonumber(clock[1]) * 1000000 + tonumber(clock[2])

local function whole(x) return string.format('%.0f', x) end
local function count(member) return tonumber(string.match(member, '^%d+')) or 0 end

-- What is configured; nil: nothing, or what is left of it is of no use.
local function config()
  local c = redis.call('HMGET', CONFIG, 'rate', 'interval', 'client', 'keep', 'epoch')
  local rate, interval = tonumber(c[1]), tonumber(c[2])
  if not rate or not interval or rate < 1 or interval < 1 or not c[3] or not c[5] then return nil end
  return {rate = rate, interval = interval, client = c[3], keep = tonumber(c[4]) or 0, epoch = c[5]}
end

-- The state under a configuration, without what was taken an interval ago.
local function open(c)
  local s = {key = c.client == '1' and OWN or SHARED, total = '+' .. c.epoch, now = real}
  local total = redis.call('ZSCORE', s.key, s.total)
  if not total then -- nothing was taken, or all of it under another rate
    redis.call('DEL', s.key)
    s.used = 0
    return s
  end
  s.used = -tonumber(total)
  s.newest, s.at = unpack(redis.call('ZRANGE', s.key, -1, -1, 'WITHSCORES'))
  local newest = tonumber(s.at)
  if newest > real + 60000000 then -- another clock: all that was taken moves with it
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

-- The state stays until it is as new, and a minute more for a clock that goes back; one
-- that all share at most as long as its rate, which may get a longer life only by a
-- script that knows its key.
local function stay(c, s)
  local life = math.ceil(c.interval / 1000) + 60000
  local left = redis.call('PTTL', CONFIG)
  if s.key == SHARED and left > 0 then life = math.min(life, left) end
  redis.call('PEXPIRE', s.key, whole(life))
end

-- The object is used, for some time yet.
local function touch(c, s, yet)
  if c.keep > 0 then redis.call('PEXPIRE', CONFIG, whole(c.keep + math.ceil(yet / 1000))) end
  stay(c, s)
end
