-- One member's heartbeat. KEYS: members scored by the time when they were last heard, their
-- infos, the versions of their rules with the same scores. ARGV: the member, its info, the time
-- in milliseconds that a silent member is kept, the most members, its version, the time that a
-- version is kept, the member's former version. Returns Redis's time in seconds and microseconds,
-- then the versions. A key of a foreign type is deleted.
if redis.replicate_commands then redis.replicate_commands() end
local heard, infos, versions = KEYS[1], KEYS[2], KEYS[3]
local member, info, life, most = ARGV[1], ARGV[2], tonumber(ARGV[3]), tonumber(ARGV[4])
local version, fresh, former = ARGV[5], tonumber(ARGV[6]), ARGV[7]
local clock = redis.call('TIME')
local now = tonumber(clock[1]) * 1000 + math.floor(tonumber(clock[2]) / 1000)

local function on(command, key, ...)
  local answer = redis.pcall(command, key, ...)
  if type(answer) == 'table' and answer.err and string.find(answer.err, 'WRONGTYPE', 1, true) then
    redis.call('DEL', key)
    return redis.call(command, key, ...)
  elseif type(answer) == 'table' and answer.err then
    return redis.call(command, key, ...) -- which raises the error as Redis does
  end
  return answer
end

on('ZADD', heard, string.format('%.0f', now), member)
on('HSET', infos, member, info)

-- Removes a few at a time, since each member's heartbeat does the same. The last ones may date
-- from before the clock was set back.
local function forget(members, judge)
  for i = 1, #members, 2 do
    local at = tonumber(members[i + 1])
    if members[i] ~= member and judge(at) then
      redis.call('ZREM', heard, members[i])
      redis.call('HDEL', infos, members[i])
    end
  end
end
local over = redis.call('ZCARD', heard) > most
forget(redis.call('ZRANGE', heard, 0, 9, 'WITHSCORES'), function(at) return over or at < now - life end)
forget(redis.call('ZRANGE', heard, -3, -1, 'WITHSCORES'), function(at) return at > now + 1000 end)
redis.call('PEXPIRE', heard, life)
redis.call('PEXPIRE', infos, life)

-- A member that still has the former version adds it again within a second.
if former ~= version then on('ZREM', versions, former) end
on('ZADD', versions, string.format('%.0f', now), version)
redis.call('PEXPIRE', versions, life)
local answer, all = {clock[1], clock[2]}, redis.call('ZRANGE', versions, 0, 49, 'WITHSCORES')
for i = 1, #all, 2 do
  local at = tonumber(all[i + 1])
  if all[i] ~= version and (at < now - fresh or at > now + 1000 or #all == 100) then
    redis.call('ZREM', versions, all[i])
  else
    answer[#answer + 1] = all[i]
  end
end
return answer
