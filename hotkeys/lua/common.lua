-- The head of all scripts. Times are Unix milliseconds on Redis's clock.
if redis.replicate_commands then redis.replicate_commands() end

local HOT, INFO, VERSION, OWNERS, BEAT, EVENTS, SCHEMA, SUSPECTS, OURS, INSTANCES = unpack(KEYS)
local NAMES = {'hot', 'info', 'version', 'owners', 'beat', 'events', 'schema', 'suspects', 'suspects', 'instances'}
local owner, holder, epoch = ARGV[1], ARGV[2], tonumber(ARGV[3])
local seen_run, seen_n = ARGV[4], tonumber(ARGV[5])
local channel, max_push = ARGV[6], tonumber(ARGV[7])
local ttl, beat_ttl, events_cap = tonumber(ARGV[8]), ARGV[9], ARGV[10]
local lease = tonumber(ARGV[11]) -- in milliseconds; with 0 a first claim takes the owner at once
local own = ARGV[12] -- the version of the owner's last change, or empty if the caller does not know it
local silence = tonumber(ARGV[13]) -- time in milliseconds after which a silent holder counts as dead: the lease, if there is one
local judged = ARGV[14] -- time up to which the holder has judged the counts, Unix milliseconds on the clock of the counts, or empty
local FIRST = 15 -- index of each script's own arguments

-- Returns the error of a command's answer, or nil.
local function failure(answer) return type(answer) == 'table' and answer.err or nil end

local function mentions(err, ...)
  for _, words in ipairs({...}) do
    if err and string.find(err, words, 1, true) then return true end
  end
  return false
end

-- Returns the error itself or, if the command is not permitted, an error that names the command,
-- since Redis 7.0 does not. Other errors are not changed, since clients use their first word.
local function why(command, err)
  if mentions(err, "can't run this command", 'permission') then return "no permission to run '" .. string.lower(command) .. "': " .. err end
  return err
end

-- Runs a command and returns its answer, or raises its error.
local function call(command, ...)
  local answer = redis.pcall(command, ...)
  local err = failure(answer)
  if not err then return answer end
  local words = why(command, err)
  if words ~= err then error(words, 0) end
  return redis.call(command, ...) -- which raises the error as Redis does
end

local clock = call('TIME')
local now = tonumber(clock[1]) * 1000 + math.floor(tonumber(clock[2]) / 1000)

-- Our counts never come near MAX, and the ends of our entries are never later than FAR from now.
-- Values beyond these are foreign.
local MAX, FAR = 2 ^ 52, math.max(600000, 2 * ttl)

local function whole(n) return string.format('%.0f', n) end

-- Parses a whole number of decimal digits. Returns nil for anything else, such as nan, inf
-- and 0x10, which tonumber accepts.
local function natural(text)
  if type(text) ~= 'string' or #text > 16 or not string.find(text, '^%d+$') then return nil end
  local n = tonumber(text)
  if n <= MAX then return n end
end

-- The names of our keys that held foreign values and were repaired.
local healed = {}
local function heal(name)
  for _, known in ipairs(healed) do
    if known == name then return end
  end
  healed[#healed + 1] = name
end

-- Errors of the stream and the channel, which the set does not need.
local refused_commands = {}

local function discard(key)
  call('DEL', key)
  -- The set is lost. Each owner rewrites its part, under another run id. Until then watchers keep
  -- the entries that they have.
  if key == HOT or key == INFO then call('DEL', VERSION) end
  local name = 'suspects' -- of another owner
  for i, ours in ipairs(KEYS) do
    if ours == key then name = NAMES[i] end
  end
  heal(name)
end

-- Runs a command on one of our keys. If the key is of another type it is deleted, and its
-- contents are written again as if Redis had lost them. (TYPE would need one more
-- permission.) Any other error is raised, by a second try.
local function on(command, key, ...)
  local answer = redis.pcall(command, key, ...)
  local err = failure(answer)
  if not err then return answer end
  if mentions(err, 'WRONGTYPE') then discard(key) end
  return call(command, key, ...)
end

-- Returns the version in force, as run id and n. Returns nil if there is none, or it cannot be
-- read or incremented.
local foreign_version = false
local function version()
  local value = on('GET', VERSION)
  local run, n = string.match(value or '', '^(%w+):([1-9]%d*)$')
  n = natural(n)
  if n and #run <= 64 then return run, n end
  foreign_version = value and value ~= ''
end

-- Returns by if it is the name of a holder, which ends with 16 hex digits, or nil.
local function named(by)
  if by and #by <= 256 and string.find(by, '^[!-~]*$') and string.find('/' .. by, '/' .. string.rep('%x', 16) .. '$') then return by end
end

-- Returns the owner of our part of the set: the epoch (0 if no process owns it), the holder, and
-- the time until which the holder counts as alive (0 if it is not recorded). Repairs the keys of
-- the set before anything is read from them.
local foreign_epoch = false
local function ownership()
  local held = on('HMGET', OWNERS, owner, owner .. ':holder', owner .. ':until')
  on('ZCARD', HOT)
  on('HGET', INFO, '')
  local theirs, by = natural(held[1]), named(held[2])
  foreign_epoch = held[1] and not theirs
  if held[2] and not by then heal('owners') end
  return theirs or 0, by, natural(held[3]) or 0
end

-- Returns the answer to a caller whose part another process holds: the least time in milliseconds
-- that it will, the epoch, and the holder.
local function taken(theirs, until_, by)
  return {lease > 0 and 'standby' or 'fenced', whole(math.max(0, until_ - now)), whole(theirs), by or ''}
end

-- Records that the holder is alive, which extends its lease if it has one.
local function extend()
  on('HSET', OWNERS, owner .. ':until', whole(now + silence))
  if judged ~= '' then on('HSET', OWNERS, owner .. ':judged', judged) end
end

-- Returns the answer to a caller if the layout has another version, which is a number. Any other
-- value is foreign and is repaired.
local function foreign_schema()
  local schema = on('GET', SCHEMA)
  if not schema or schema == '1' then return nil end
  if #schema <= 4 and string.find(schema, '^[1-9]%d*$') then return {'schema', schema} end
  call('SET', SCHEMA, '1')
  heal('schema')
end

-- Returns the answer to a caller that may not write, or nil. "lost" means that Redis lost our
-- claim.
local function fence()
  local theirs, by, until_ = ownership()
  if theirs < epoch or not by then return {'lost'} end
  if by ~= holder then return taken(theirs, until_, by) end
  if theirs > epoch then return {'lost'} end -- Redis ran an earlier claim of ours late
  local refused = foreign_schema()
  if not refused then extend() end
  return refused
end

-- Takes the owner for the caller and returns the next epoch. A lease begins unless the caller
-- held the owner already. The first epoch follows the last one, which is safe since the fence
-- checks the holder too.
local function take(theirs, ours)
  on('HSET', OWNERS, owner .. ':holder', holder)
  if foreign_epoch then
    call('HDEL', OWNERS, owner)
    heal('owners')
  end
  if not ours then extend() end
  local next_epoch = math.max(theirs, epoch) + 1
  if next_epoch > MAX then next_epoch = 1 end
  call('HINCRBY', OWNERS, owner, whole(next_epoch - theirs))
  return next_epoch
end

-- Records the owner's last change.
local function changed(v) on('HSET', OWNERS, owner .. ':version', v) end

-- Reports whether Redis has lost changes that the caller saw. If others have raised the
-- version again since, the caller's own last change is missing.
local function went_back(run, n)
  if run ~= seen_run or n < seen_n then return true end
  return own ~= '' and own ~= on('HGET', OWNERS, owner .. ':version')
end

-- Fills the holes that package published left in a text.
local function fill(text, holes)
  return (string.gsub(text, '[\1-\4]', holes))
end

-- Extends the heartbeat, with its summary of the fleet.
local function alive()
  if call('PEXPIRE', BEAT, beat_ttl) == 0 then
    call('SET', BEAT, '{"instances":0,"suspects":""}', 'PX', beat_ttl)
  end
end

-- Writes one hot entry. info has a hole for its end.
local function write(member, score, info)
  on('ZADD', HOT, score, member)
  on('HSET', INFO, member, fill(info, {['\3'] = whole(now + ttl)}))
end

-- Returns the owner and the end of an entry's info, or nil if it cannot be read. A foreign
-- end is nil.
local function read(info)
  local ok, is = pcall(cjson.decode, info or '')
  if not ok or type(is) ~= 'table' or type(is.owner) ~= 'string' then return nil end
  local until_ = tonumber(is['until'])
  if until_ and until_ <= now + FAR then return is.owner, until_ end
  return is.owner
end

-- Reports whether an owner exists, that is, was ever claimed.
local owners = {}
local function exists(by)
  if owners[by] == nil then owners[by] = natural(on('HGET', OWNERS, by)) ~= nil end
  return owners[by]
end

-- Reports whether the key of an entry has moved to another owner, which renews it. It then has
-- more than half of its time left, and is not ours to write.
local function moved(member)
  local by, until_ = read(on('HGET', INFO, member))
  return by and by ~= owner and until_ and until_ > now + ttl / 2 and exists(by)
end

-- Returns the answer to a caller that has taken the owner under this epoch and takes over its
-- entries: the number of unreadable entries, then member, score and info of each of the owner's
-- entries.
local function inventory(taken_epoch)
  local run, n = version()
  local until_judged = natural(on('HGET', OWNERS, owner .. ':judged'))
  local answer, unreadable = {'ok', run and (run .. ':' .. whole(n)) or '', whole(taken_epoch), '', until_judged and whole(until_judged) or ''}, 0
  local infos = on('HGETALL', INFO)
  for i = 1, #infos, 2 do
    local by, until_ = read(infos[i + 1])
    if not by or not until_ then
      unreadable = unreadable + 1
    elseif by == owner and until_ > now then
      local score = on('ZSCORE', HOT, infos[i])
      if score then
        for _, part in ipairs({infos[i], score, infos[i + 1]}) do answer[#answer + 1] = part end
      end
    end
  end
  answer[4] = whole(unreadable)
  return answer
end

-- Writes the entries in the arguments from first to last, except for keys that have moved.
local function write_on(first, last)
  for i = first, last, 3 do
    if not moved(ARGV[i]) then write(ARGV[i], ARGV[i + 1], ARGV[i + 2]) end
  end
end

-- The state of a change's keys before it, for readers of the stream: JSON members of the field
-- "was", see package internal/published.
local was_cool, was_again = {}, {}

-- Records that a key that is about to be written was hot before.
local function again(member) was_again[#was_again + 1] = cjson.encode(member) end

-- Records that a key is hot already, if it is. info is its entry so far. If the entry has expired
-- the key is not hot: watchers have dropped it.
local function remember(member, info)
  local by, until_ = read(info)
  if by and until_ and until_ > now then again(member) end
end

-- Records the info of an entry that is about to be removed, with its rate.
local function bury(member, info)
  if not info or #info > 65536 or not read(info) then return end -- a foreign one
  local rate = tonumber(on('ZSCORE', HOT, member) or '')
  if not rate or rate ~= rate or rate < 0 or rate > MAX then rate = 0 end
  was_cool[#was_cool + 1] = cjson.encode(member) .. ':{"rate":' .. string.format('%.6g', rate) .. ',"info":' .. info .. '}'
end

-- Appends a change to the stream. If its last ID is the last possible one, the stream is deleted:
-- its changes are lost, as if the cap had removed them.
local function append(v, change)
  local args = {EVENTS, 'MAXLEN', '~', events_cap, '*', 'version', v, 'change', change, 'owner', owner, 'epoch', whole(epoch)}
  if #was_cool + #was_again > 0 then
    args[#args + 1] = 'was'
    args[#args + 1] = '{"cool":{' .. table.concat(was_cool, ',') .. '},"again":[' .. table.concat(was_again, ',') .. ']}'
  end
  local added = redis.pcall('XADD', unpack(args))
  if mentions(failure(added), 'WRONGTYPE', 'exhausted', 'smaller') then
    discard(EVENTS)
    added = redis.pcall('XADD', unpack(args))
  end
  if failure(added) then refused_commands[#refused_commands + 1] = why('xadd', failure(added)) end
end

local function publish(message)
  local heard = redis.pcall('PUBLISH', channel, message)
  if failure(heard) then refused_commands[#refused_commands + 1] = why('publish', failure(heard)) end
end

-- Commits a change of the set whose entries are written. cool is a list of members. The stream
-- and the channel only make watchers faster: if Redis refuses them, the change is made
-- nevertheless, and the answer has the errors.
local function commit(run, n, cool, template)
  local quoted = {}
  for i, member in ipairs(cool) do
    bury(member, on('HGET', INFO, member))
    on('ZREM', HOT, member)
    on('HDEL', INFO, member)
    if string.find(member, '^[a-z0-9_-]+ ') then quoted[#quoted + 1] = cjson.encode(member) end
  end
  local v = run .. ':' .. whole(n)
  call('SET', VERSION, v)
  if foreign_version then heal('version') end
  changed(v)
  call('SETNX', SCHEMA, '1')
  alive()
  local change = fill(template, {
    ['\1'] = v,
    ['\2'] = whole(now),
    ['\3'] = whole(now + ttl),
    ['\4'] = table.concat(quoted, ','),
  })
  append(v, change)
  if #change > max_push then change = '{"version":"' .. v .. '"}' end
  publish(change)
  return {'ok', v}
end

-- Adds the report to a script's answer: the repaired keys, the errors, and whether the set has
-- different numbers of members and infos.
local untidy = false
local function sealed(answer)
  answer[#answer + 1] = table.concat(healed, ',')
  answer[#answer + 1] = table.concat(refused_commands, '; ')
  answer[#answer + 1] = untidy and '1' or ''
  return answer
end
