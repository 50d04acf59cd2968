-- Shared head of all scripts. Times are unix milliseconds on Redis's clock.
if redis.replicate_commands then redis.replicate_commands() end

local HOT, INFO, VERSION, OWNERS, BEAT, EVENTS, SCHEMA, SUSPECTS, OURS, INSTANCES = unpack(KEYS)
local owner, holder, epoch = ARGV[1], ARGV[2], tonumber(ARGV[3])
local seen_run, seen_n = ARGV[4], tonumber(ARGV[5])
local channel, max_push = ARGV[6], tonumber(ARGV[7])
local ttl, beat_ttl, events_cap = tonumber(ARGV[8]), ARGV[9], ARGV[10]
local FIRST = 11 -- of each script's own arguments

local clock = redis.call('TIME')
local now = tonumber(clock[1]) * 1000 + math.floor(tonumber(clock[2]) / 1000)

local function whole(n) return string.format('%.0f', n) end

-- The version in force: run id and n, or nil when there is none.
local function version()
  local run, n = string.match(redis.call('GET', VERSION) or '', '^(%w+):(%d+)$')
  if run and #run <= 64 then return run, tonumber(n) end
end

-- Who owns our part of the set: epoch (0: nobody) and holder.
local function ownership()
  local held = redis.call('HMGET', OWNERS, owner, owner .. ':holder')
  return tonumber(held[1] or '0') or 0, held[2]
end

local function foreign_schema()
  local schema = redis.call('GET', SCHEMA)
  if schema and schema ~= '1' then return {'schema', schema} end
end

-- Why the caller may not write, or nil. "lost": Redis forgot our claim.
local function fence()
  local theirs, by = ownership()
  if theirs < epoch then return {'lost'} end
  if theirs > epoch or by ~= holder then return {'fenced', whole(theirs)} end
  return foreign_schema()
end

-- Whether the history that the caller last saw was broken off.
local function went_back(run, n)
  return run ~= seen_run or n < seen_n
end

-- Fills the holes that package wire left.
local function fill(text, holes)
  return (string.gsub(text, '[\1-\4]', holes))
end

-- The heartbeat goes on, and what it tells of the fleet with it.
local function alive()
  if redis.call('PEXPIRE', BEAT, beat_ttl) == 0 then
    redis.call('SET', BEAT, '{"instances":0,"suspects":""}', 'PX', beat_ttl)
  end
end

-- Writes one hot entry: member, score, info with a hole for its end.
local function write(member, score, info)
  redis.call('ZADD', HOT, score, member)
  redis.call('HSET', INFO, member, fill(info, {['\3'] = whole(now + ttl)}))
end

-- Makes a change of the set: entries are the arguments from first to last in
-- threes, cool a list of members.
local function commit(run, n, first, last, cool, template)
  for i = first, last, 3 do write(ARGV[i], ARGV[i + 1], ARGV[i + 2]) end
  local quoted = {}
  for i, member in ipairs(cool) do
    redis.call('ZREM', HOT, member)
    redis.call('HDEL', INFO, member)
    quoted[i] = cjson.encode(member)
  end
  local v = run .. ':' .. whole(n)
  redis.call('SET', VERSION, v)
  redis.call('SETNX', SCHEMA, '1')
  alive()
  local change = fill(template, {
    ['\1'] = v,
    ['\2'] = whole(now),
    ['\3'] = whole(now + ttl),
    ['\4'] = table.concat(quoted, ','),
  })
  redis.call('XADD', EVENTS, 'MAXLEN', '~', events_cap, '*', 'version', v, 'change', change)
  if #change > max_push then change = '{"version":"' .. v .. '"}' end
  redis.call('PUBLISH', channel, change)
  return {'ok', v}
end
