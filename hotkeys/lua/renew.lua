-- What does not change the set, so that the version stays: current rates and a
-- new end for our entries, our suspects, the instances, and the heartbeat. How
-- many arguments are entries and how many suspects (-1: as they were), then
-- these, then the instances with their ages in milliseconds.
local refused = fence()
if refused then return refused end
local run, n = version()
if went_back(run, n) then return {'back'} end
local entries, told = tonumber(ARGV[FIRST]), tonumber(ARGV[FIRST + 1])
local first = FIRST + 2
local suspects = first + entries
local instances = suspects + math.max(0, told)
for i = first, suspects - 1, 3 do
  if not redis.call('ZSCORE', HOT, ARGV[i]) then return {'gone'} end
end
write_on(first, suspects - 1)

-- The instances: the latest word of whoever heard them. GT came with Redis 6.2.
local life, max_instances, max_suspects = 10000, 100000, 1000
redis.call('ZREMRANGEBYSCORE', INSTANCES, '(' .. whole(now), '+inf') -- the clock was set back
for i = instances, #ARGV, 2 do
  local at = whole(now - tonumber(ARGV[i + 1]))
  local added = redis.pcall('ZADD', INSTANCES, 'GT', at, ARGV[i])
  if type(added) == 'table' then redis.call('ZADD', INSTANCES, at, ARGV[i]) end
end
redis.call('ZREMRANGEBYSCORE', INSTANCES, '-inf', whole(now - life))
redis.call('ZREMRANGEBYRANK', INSTANCES, 0, -1 - max_instances)
redis.call('PEXPIRE', INSTANCES, life)

-- Our suspects last as long as a heartbeat, and the whole is what is left of all
-- owners': a dead one's fade.
if told >= 0 then
  redis.call('DEL', OURS)
  for i = suspects, instances - 1, 2 do redis.call('ZADD', OURS, ARGV[i + 1], ARGV[i]) end
end
redis.call('PEXPIRE', OURS, beat_ttl)
local parts = {}
for _, field in ipairs(redis.call('HKEYS', OWNERS)) do
  if not string.find(field, ':', 1, true) then parts[#parts + 1] = SUSPECTS .. ':' .. field end
end
local before = redis.call('ZRANGE', SUSPECTS, 0, -1)
parts[#parts + 1], parts[#parts + 2] = 'AGGREGATE', 'MAX'
redis.call('ZUNIONSTORE', SUSPECTS, #parts - 2, unpack(parts))
redis.call('ZREMRANGEBYRANK', SUSPECTS, 0, -1 - max_suspects)
redis.call('PEXPIRE', SUSPECTS, beat_ttl)
local after = redis.call('ZRANGE', SUSPECTS, 0, -1)

local function digest(members)
  if #members == 0 then return '' end
  table.sort(members)
  return redis.sha1hex(table.concat(members, '\n'))
end
local was, is = digest(before), digest(after)
local live = whole(redis.call('ZCARD', INSTANCES))
redis.call('SET', BEAT, '{"instances":' .. live .. ',"suspects":"' .. is .. '"}', 'PX', beat_ttl)

-- JSON strings of what is in one list and not in the other.
local function less(members, others)
  local there, quoted = {}, {}
  for _, member in ipairs(others) do there[member] = true end
  for _, member in ipairs(members) do
    if not there[member] then quoted[#quoted + 1] = cjson.encode(member) end
  end
  return quoted
end
local v = run .. ':' .. whole(n)
if was ~= is then
  local head = '{"version":"' .. v .. '","fleet":{"instances":' .. live
  local new, over = less(after, before), less(before, after)
  local change = head .. ',"was":"' .. was .. '","suspects":"' .. is .. '","new":[' .. table.concat(new, ',')
    .. '],"over":[' .. table.concat(over, ',') .. ']}}'
  if #change <= max_push then
    redis.call('PUBLISH', channel, change)
  else -- in parts, without digests: the poll tells what is over
    local from, size = 1, 0
    for i = 1, #new + 1 do
      size = size + #(new[i] or '') + 1
      if i > from and (i > #new or #head + size + 16 > max_push) then
        redis.call('PUBLISH', channel, head .. ',"new":[' .. table.concat(new, ',', from, i - 1) .. ']}}')
        from, size = i, #(new[i] or '') + 1
      end
    end
  end
end
return {'ok', v}
