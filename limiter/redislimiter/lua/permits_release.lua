-- Releases permits. ARGV: the number of the latest permits, or 0 for the permits that the call
-- with an id took; the id.
--
-- Returns the number of released permits, or -1 if no rate is set.
local c = config()
if not c then return -1 end
local s = open(c)
local left, id, back, from = tonumber(ARGV[1]), ARGV[2], 0, 0
local function give(member, instant, n)
  redis.call('ZREM', s.key, member)
  local rest = count(member) - n
  if rest > 0 then redis.call('ZADD', s.key, instant, whole(rest) .. string.match(member, ' .*$')) end
  back = back + n
end
if id ~= '' then
  local instant = redis.call('ZSCORE', s.key, id)
  if instant then give(id, instant, count(id)) end
  left = 0
end
local newest = left > 0 and redis.call('ZREVRANGEBYSCORE', s.key, '+inf', '(0', 'WITHSCORES', 'LIMIT', 0, math.min(left, 1000)) or {}
while #newest > 0 do
  for i = 1, #newest, 2 do
    local n = math.min(left, count(newest[i]))
    give(newest[i], newest[i + 1], n)
    left = left - n
    if left == 0 then break end
  end
  newest = left > 0 and redis.call('ZREVRANGEBYSCORE', s.key, '+inf', '(0', 'WITHSCORES', 'LIMIT', 0, math.min(left, 1000)) or {}
end
if back > 0 then redis.call('ZINCRBY', s.key, back, s.total) end
touch(c, s, 0)
return back
