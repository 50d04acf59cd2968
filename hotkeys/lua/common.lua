-- Shared head of all scripts. Times are unix milliseconds on Redis's clock.
if redis.replicate_commands then redis.replicate_commands() end

local HOT, INFO, VERSION, OWNERS, BEAT, EVENTS, SCHEMA, SUSPECTS, OURS, INSTANCES = unpack(KEYS)
local owner, holder, epoch = ARGV[1], ARGV[2], tonumber(ARGV[3])
local seen_run, seen_n = ARGV[4], tonumber(ARGV[5])
local channel, max_push = ARGV[6], tonumber(ARGV[7])
local ttl, beat_ttl, events_cap = tonumber(ARGV[8]), ARGV[9], ARGV[10]
local lease = tonumber(ARGV[11]) -- in milliseconds; 0: a claim takes the owner at once
local own = ARGV[12] -- the version of the owner's last change, as the caller knows it; empty: it does not
local FIRST = 13 -- of each script's own arguments

local clock = redis.call('TIME')
local now = tonumber(clock[1]) * 1000 + math.floor(tonumber(clock[2]) / 1000)

local function whole(n) return string.format('%.0f', n) end

-- The version in force: run id and n, or nil when there is none.
local function version()
  local run, n = string.match(redis.call('GET', VERSION) or '', '^(%w+):(%d+)$')
  if run and #run <= 64 then return run, tonumber(n) end
end

-- Who owns our part of the set: epoch (0: nobody), holder, and the end of the
-- holder's lease (0: there is none).
local function ownership()
  local held = redis.call('HMGET', OWNERS, owner, owner .. ':holder', owner .. ':until')
  return tonumber(held[1] or '0') or 0, held[2], tonumber(held[3] or '0') or 0
end

-- The answer to a caller whose part another process has: with a lease it stands
-- by, and is told for how long at least.
local function taken(theirs, until_)
  if lease == 0 then return {'fenced', whole(theirs)} end
  return {'standby', whole(math.max(0, until_ - now))}
end

-- The holder's lease begins anew.
local function extend()
  if lease > 0 then redis.call('HSET', OWNERS, owner .. ':until', whole(now + lease)) end
end

local function foreign_schema()
  local schema = redis.call('GET', SCHEMA)
  if schema and schema ~= '1' then return {'schema', schema} end
end

-- Why the caller may not write, or nil. "lost": Redis forgot our claim.
local function fence()
  local theirs, by, until_ = ownership()
  if theirs < epoch then return {'lost'} end
  if by ~= holder then return taken(theirs, until_) end
  if theirs > epoch then return {'lost'} end -- a claim of our own that Redis ran late
  local refused = foreign_schema()
  if not refused then extend() end
  return refused
end

-- Takes the owner for the caller under the next epoch, which it returns; a lease
-- begins unless it was the caller's already.
local function take(theirs, ours)
  redis.call('HSET', OWNERS, owner .. ':holder', holder)
  if not ours then
    redis.call('HDEL', OWNERS, owner .. ':until')
    extend()
  end
  return redis.call('HINCRBY', OWNERS, owner, math.max(theirs, epoch) + 1 - theirs)
end

-- Notes the owner's last change.
local function changed(v) redis.call('HSET', OWNERS, owner .. ':version', v) end

-- Whether the history that the caller last saw was broken off. Where others have
-- brought the version up again since, the caller's own last change is missing.
local function went_back(run, n)
  if run ~= seen_run or n < seen_n then return true end
  return own ~= '' and own ~= redis.call('HGET', OWNERS, owner .. ':version')
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

-- What an entry's info says: its owner and its end; nil when it cannot be read.
local function read(info)
  local ok, is = pcall(cjson.decode, info or '')
  if ok and type(is) == 'table' and type(is.owner) == 'string' then return is.owner, tonumber(is['until']) end
end

-- Whether an entry belongs to another owner, who keeps it alive: what is renewed
-- each second has more than half of its time left. Then it is not ours to write:
-- the key has moved.
local function moved(member)
  local by, until_ = read(redis.call('HGET', INFO, member))
  return by and by ~= owner and until_ and until_ > now + ttl / 2
end

-- The answer to a caller that has taken the owner under this epoch and goes on with
-- what others have published: how many entries cannot be read, then member, score
-- and info of the owner's own.
local function inventory(taken_epoch)
  local run, n = version()
  local answer, unreadable = {'ok', run and (run .. ':' .. whole(n)) or '', whole(taken_epoch), ''}, 0
  local infos = redis.call('HGETALL', INFO)
  for i = 1, #infos, 2 do
    local by, until_ = read(infos[i + 1])
    if not by or not until_ then
      unreadable = unreadable + 1
    elseif by == owner and until_ > now then
      local score = redis.call('ZSCORE', HOT, infos[i])
      if score then
        for _, part in ipairs({infos[i], score, infos[i + 1]}) do answer[#answer + 1] = part end
      end
    end
  end
  answer[4] = whole(unreadable)
  return answer
end

-- Writes what stands in the arguments from first to last, in threes, but for what
-- has moved.
local function write_on(first, last)
  for i = first, last, 3 do
    if not moved(ARGV[i]) then write(ARGV[i], ARGV[i + 1], ARGV[i + 2]) end
  end
end

-- Makes a change of the set, whose entries are written: cool is a list of members.
local function commit(run, n, cool, template)
  local quoted = {}
  for i, member in ipairs(cool) do
    redis.call('ZREM', HOT, member)
    redis.call('HDEL', INFO, member)
    quoted[i] = cjson.encode(member)
  end
  local v = run .. ':' .. whole(n)
  redis.call('SET', VERSION, v)
  changed(v)
  redis.call('SETNX', SCHEMA, '1')
  alive()
  local change = fill(template, {
    ['\1'] = v,
    ['\2'] = whole(now),
    ['\3'] = whole(now + ttl),
    ['\4'] = table.concat(quoted, ','),
  })
  redis.call('XADD', EVENTS, 'MAXLEN', '~', events_cap, '*', 'version', v, 'change', change, 'owner', owner, 'epoch', whole(epoch))
  if #change > max_push then change = '{"version":"' .. v .. '"}' end
  redis.call('PUBLISH', channel, change)
  return {'ok', v}
end
