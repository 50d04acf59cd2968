-- Takes permits, if they are available. ARGV: the number, an id of this call, 1 if the caller
-- waits after a denial, then the number that each waiter before it wants. If there are any,
-- nothing is taken.
--
-- Returns 1 if taken, 0 if denied, -1 if no rate is set, and -2 if it wants more than the rate.
-- After a denial the second number is the time until the caller's turn, if no one else comes. It
-- is less if there are more entries before it than are read.
local c = config()
if not c then return {-1, 0} end
local n = tonumber(ARGV[1])
if n > c.rate then return {-2, c.rate} end
local s = open(c)
if #ARGV == 3 and s.used + n <= c.rate then
  local all = n
  if s.newest and s.at > s.now - c.interval / FINE and #redis.call('ZRANGE', s.key, FINE, FINE) > 0 then
    all = all + count(s.newest)
    redis.call('ZREM', s.key, s.newest)
  end
  redis.call('ZADD', s.key, whole(s.now), whole(all) .. ' ' .. ARGV[2])
  redis.call('ZINCRBY', s.key, -n, s.total)
  touch(c, s, 0)
  return {1, 0}
end

-- Each waiter takes the permits that come back first, one waiter after the other. Its own permits
-- come back an interval later.
local free, at, back, first, from = c.rate - s.used, real, {}, 1, 1
local function next_back()
  if first > #back and from then
    local taken = redis.call('ZRANGE', s.key, from, from + 99, 'WITHSCORES')
    for i = 1, #taken, 2 do back[#back + 1] = {tonumber(taken[i + 1]) + c.interval, count(taken[i])} end
    from = #taken == 200 and from < 2 * FINE and from + 100 or nil
  end
end
local later = {} -- permits that the waiters before the caller will take, after all that are taken now
local next_later = 1
local function serve(wanted)
  while free < wanted do
    next_back()
    local one = back[first]
    if one then
      first = first + 1
    else
      one = later[next_later]
      if not one then return end
      next_later = next_later + 1
    end
    at = math.max(at, one[1])
    free = free + one[2]
  end
  free = free - wanted
  later[#later + 1] = {at + c.interval, wanted}
end
for i = 4, #ARGV do serve(math.min(tonumber(ARGV[i]), c.rate)) end
serve(n)
local wait = math.max(0, math.min(at - real, 4e15))
touch(c, s, ARGV[3] == '1' and wait or 0)
return {0, wait}
