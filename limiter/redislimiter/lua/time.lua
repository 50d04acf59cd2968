-- What the limiters' scripts begin with. Times are microseconds since the Unix epoch, on
-- Redis's clock unless the caller gives another. `answer` is what came of each key, of
-- which `done` are; `at` is where the names of the next one's states begin in KEYS.
if redis.replicate_commands then redis.replicate_commands() end -- before Redis 7, for TIME
local now, spare = struct.unpack('<dd', ARGV[1])
if now < 0 then
  local time = redis.call('TIME')
  now = time[1] * 1000000 + time[2]
end
local WHOLE = 9007199254740992 -- 2^53
local answer, done, at = {}, 0, 1
