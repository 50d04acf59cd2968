-- Beginning of the limiters' scripts. Times are microseconds since the Unix epoch, by Redis's
-- clock unless the caller sends another time. `answer` holds the outcome of each key; the first
-- `done` are complete. `at` is the index in KEYS of the names of the next key's states.
--
-- The caller gives up at `till`, if that is not 0. A script that begins later was delayed, and
-- has no effect: the reply is then the time alone.
if redis.replicate_commands then redis.replicate_commands() end -- before Redis 7, for TIME
local now, spare, till = struct.unpack('<ddd', ARGV[1])
if now < 0 then
  local time = redis.call('TIME')
  now = time[1] * 1000000 + time[2]
  if till > 0 and now > till then return struct.pack('<d', now) end
end
local WHOLE = 9007199254740992 -- 2^53
local TOGETHER = 8 -- added to the kind of asks that take all or nothing; they are the last ones
local answer, done, at = {}, 0, 1
