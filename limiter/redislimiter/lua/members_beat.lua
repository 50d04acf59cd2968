-- One member's heartbeat. KEYS: the members, each scored by the time when it counts as dead; the
-- fleet's data; handovers by member, each with its time before the text. ARGV: the member; how
-- long it lives; the longest that any member may live; whether it holds a share ('1'); whether it
-- wants a handover ('1'); the time that a fleet takes to begin after its last member came; how
-- long the fleet is remembered; how long a handover lasts. Times are milliseconds of Redis's
-- clock.
--
-- Returns the number of live members; 1 if this one was not among them; how often existing
-- members saw others die; when the fleet began or 0; 1 if it has begun; and how long there had
-- been no member (-1 if that is not known). If there is a handover, its age and text follow.
local clock = redis.call('TIME')
local now = tonumber(clock[1]) * 1000 + math.floor(tonumber(clock[2]) / 1000)
local longest = tonumber(ARGV[3])
local dead = redis.call('ZREMRANGEBYSCORE', KEYS[1], '-inf', now)
dead = dead + redis.call('ZREMRANGEBYSCORE', KEYS[1], '(' .. string.format('%.0f', now + longest), '+inf') -- from before the clock was set back
local new = redis.call('ZADD', KEYS[1], now + tonumber(ARGV[2]), ARGV[1])
redis.call('PEXPIRE', KEYS[1], longest)
local count = redis.call('ZCARD', KEYS[1])

local LONGEST_START = 10 -- in the times that a fleet takes to begin after its last member came
local settle = tonumber(ARGV[6])
local known = redis.call('HMGET', KEYS[2], 'beat', 'began', 'last', 'idle', 'deaths')
local beat, began, last = tonumber(known[1] or ''), tonumber(known[2] or '') or 0, tonumber(known[3] or '') or 0
local idle, deaths = tonumber(known[4] or '') or -1, tonumber(known[5] or '') or 0
if ARGV[4] == '1' and new == 1 then
  began, last = 0, 0 -- the fleet is an old one that Redis has lost
elseif new == 1 and count == 1 then
  began, last, idle = now, now, beat and math.max(0, now - beat) or -1
elseif new == 1 and now - last < settle and now - began < LONGEST_START * settle then
  last = now
end
if new == 0 and dead > 0 then
  deaths = deaths + 1
end
local function whole(n) return string.format('%.0f', n) end
redis.call('HSET', KEYS[2], 'beat', whole(now), 'began', whole(began), 'last', whole(last), 'idle', whole(idle), 'deaths', whole(deaths))
redis.call('PEXPIRE', KEYS[2], ARGV[7])

local begun = 0
if now - last >= settle then
  begun = 1
end
local answer = {count, new, deaths, began, begun, idle}
if ARGV[5] ~= '1' or redis.call('HLEN', KEYS[3]) == 0 then
  return answer
end
local all, oldest, age = redis.call('HGETALL', KEYS[3]), nil, -1
for i = 1, #all, 2 do
  local lasted = now - (tonumber(string.match(all[i + 1], '^%d+')) or 0)
  if lasted > tonumber(ARGV[8]) then
    redis.call('HDEL', KEYS[3], all[i])
  elseif lasted > age then
    oldest, age = i, lasted
  end
end
if oldest then
  redis.call('HDEL', KEYS[3], all[oldest])
  answer[7], answer[8] = math.max(0, age), string.match(all[oldest + 1], '^%d+ (.*)$')
end
return answer
