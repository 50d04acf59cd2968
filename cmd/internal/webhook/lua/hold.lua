-- Takes or keeps the right to send for a namespace, and raises the position. Arguments: the
-- sender, for how many milliseconds, the position or an empty text, and "1" to give the right
-- back. Returns whether the caller may send, then the position, or for how many milliseconds
-- another has the right. Times are Unix milliseconds on Redis's clock.
if redis.replicate_commands then redis.replicate_commands() end
local KEY, sender, lease, position, done = KEYS[1], ARGV[1], tonumber(ARGV[2]), ARGV[3], ARGV[4]
local clock = redis.call('TIME')
local now = tonumber(clock[1]) * 1000 + math.floor(tonumber(clock[2]) / 1000)
local function whole(n) return string.format('%.0f', n) end

local probe = redis.pcall('HGET', KEY, 'sender')
if type(probe) == 'table' and probe.err then
  if not string.find(probe.err, 'WRONGTYPE', 1, true) then return redis.call('HGET', KEY, 'sender') end
  redis.call('DEL', KEY) -- a foreign value
  probe = false
end
local until_ = tonumber(redis.call('HGET', KEY, 'until') or '') or 0
if until_ > now + 10 * lease then until_ = 0 end -- no sender wrote that
if probe and probe ~= sender and until_ > now then return {'0', whole(until_ - now)} end

-- Returns the parts of a position by which positions are ordered, or nil.
local function parts(id)
  local ms, seq, kind, i = string.match(id or '', '^(%d+)%-(%d+)%.([chkx])(%d+)$')
  if ms then return {tonumber(ms), tonumber(seq), string.byte(kind), tonumber(i)} end
end
local held = redis.call('HGET', KEY, 'position')
local old, new = parts(held), parts(position)
local raise = new and not old
if new and old then
  for i = 1, 4 do
    if new[i] ~= old[i] then raise = new[i] > old[i]; break end
  end
end
if raise then
  held = position
elseif not old then
  held = whole(now) .. '-0.c0' -- events from now on
end
redis.call('HSET', KEY, 'position', held)
if done == '1' then
  redis.call('HDEL', KEY, 'sender', 'until')
else
  redis.call('HSET', KEY, 'sender', sender)
  redis.call('HSET', KEY, 'until', whole(now + lease))
end
return {'1', held}
