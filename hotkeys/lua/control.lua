-- Sets or releases one control. KEYS: the controls, the stream of their changes. ARGV: the
-- channel, "set" or "release", the member, its value and the change with holes, the span in
-- milliseconds, a new run id, the most controls, the most changes. The span of a release is how
-- long instances may hold a key without a control, or 0 if none does.
--
-- Returns a status ("ok", "none", "full"), Redis's time, the end of the control, its action
-- and "1" if a key held a foreign value and was deleted. Times are Unix milliseconds on
-- Redis's clock.
if redis.replicate_commands then redis.replicate_commands() end
local CONTROL, EVENTS = KEYS[1], KEYS[2]
local channel, kind, member, value, change = ARGV[1], ARGV[2], ARGV[3], ARGV[4], ARGV[5]
local span, fresh, most, most_events = tonumber(ARGV[6]), ARGV[7], tonumber(ARGV[8]), ARGV[9]
local healed = ''
local clock = redis.call('TIME')
local now = tonumber(clock[1]) * 1000 + math.floor(tonumber(clock[2]) / 1000)

local function whole(n) return string.format('%.0f', n) end

local function failure(answer) return type(answer) == 'table' and answer.err or nil end

-- Runs a command on one of our keys. A key of another type is deleted first.
local function on(command, key, ...)
  local answer = redis.pcall(command, key, ...)
  local err = failure(answer)
  if not err then return answer end
  if string.find(err, 'WRONGTYPE', 1, true) then
    redis.call('DEL', key)
    healed = '1'
  end
  return redis.call(command, key, ...)
end

local function fill(text, action, until_)
  return (string.gsub(text, '[\1-\3]', {['\1'] = action, ['\2'] = whole(now), ['\3'] = whole(until_)}))
end

-- Our programs never write as many, and reading them would hold up Redis.
if on('HLEN', CONTROL) > 10 * most then
  redis.call('DEL', CONTROL)
  healed = '1'
end

-- Removes entries that have ended or cannot be read, and finds the latest end of the others.
local entries, live, latest, was = redis.call('HGETALL', CONTROL), 0, 0, nil
local run, n = nil, 0
for i = 1, #entries, 2 do
  local field = entries[i]
  if field == 'version' then
    local digits
    run, digits = string.match(entries[i + 1], '^(%w+):([1-9]%d*)$')
    n = run and #run <= 64 and #digits <= 15 and tonumber(digits) or nil
    if not n then run, n = nil, 0 end
  else
    local ok, is = pcall(cjson.decode, entries[i + 1])
    local until_ = ok and type(is) == 'table' and tonumber(is['until'])
    if not until_ or until_ <= now or until_ > now + 90000000 or type(is.action) ~= 'string' then
      redis.call('HDEL', CONTROL, field)
    elseif field == member then
      was = is
    else
      live, latest = live + 1, math.max(latest, until_)
    end
  end
end

local until_, action = now + span, ''
if kind == 'release' then
  if not was and span == 0 then return {'none', whole(now), '', '', healed} end
  action = 'hold'
  if was then
    until_, action = tonumber(was['until']), was.action
    redis.call('HDEL', CONTROL, member)
  end
else
  if live >= most then return {'full', whole(now), '', '', healed} end
  redis.call('HSET', CONTROL, member, fill(value, '', until_))
  latest = math.max(latest, until_)
end
if not run then run = fresh end
local version = run .. ':' .. whole(n + 1)
redis.call('HSET', CONTROL, 'version', version)
-- One more minute, so that an emptied set is not mistaken for a lost one.
redis.call('PEXPIRE', CONTROL, math.max(latest - now, 0) + 60000)
local added = on('XADD', EVENTS, 'MAXLEN', '~', most_events, '*', 'version', version, 'change', fill(change, action, until_))
redis.call('PEXPIRE', EVENTS, 172800000)
redis.call('PUBLISH', channel, '{"version":"' .. version .. '"}')
return {'ok', whole(now), whole(until_), action, healed}
