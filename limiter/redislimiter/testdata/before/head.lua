-- Head of the limiters' scripts. Times are microseconds since the Unix epoch, on
-- Redis's clock unless the caller gives another. All numbers but those of a warm-up
-- are whole and below 2^53, so that Lua's floats hold them exactly.
--
-- A script is run as a whole each time, and to make its functions is much of the work.
-- A function costs the more the more locals outside of it it uses; so there are few,
-- and what is known of the key at hand stands in tables.
if redis.replicate_commands then redis.replicate_commands() end -- before Redis 7, for TIME

-- A state is a string: the letter of its algorithm; the end of the key's penalty, 0:
-- none; the last instant of its time; then what the algorithm keeps.
local HEAD = 17
local OWN = 66 -- where the algorithm's own begins in what is asked, see below
local algorithms = {}

-- The time, and for how many milliseconds a state is kept after it is as new. The key at
-- hand: its name, the letter and the limit of its quota, what time it is for its state,
-- the end of its penalty, and whether the state has to be written.
local on = {now = 0, spare = 0, key = '', letter = '', limit = 0, t = 0, lock = 0, dirty = false}
on.now, on.spare = struct.unpack('<dd', ARGV[1])
if on.now < 0 then
  local time = redis.call('TIME')
  on.now = time[1] * 1000000 + time[2]
end

-- Begins the time of a state. It goes on from its last instant, where there is one: up
-- to a minute behind that, time stands still. By more it is another clock: then the
-- state's instants are by so much too late, and that is what is returned, else 0.
local function begin(lock, last)
  local now = on.now
  on.t, on.lock, on.dirty = now, lock, false
  if now >= last then return 0 end
  if last - now <= 60000000 then
    on.t = last
    return 0
  end
  on.dirty = true
  if lock > 0 then on.lock = math.max(0, lock - (last - now)) end
  return last - now
end

-- How many milliseconds a state is kept that is as new after so many microseconds.
local function ttl(after)
  return math.ceil(math.max(after, on.lock - on.t) / 1000) + on.spare
end

-- A time from the state's on as seen from now, which may be behind.
local function seen(after) return after > 0 and after + on.t - on.now or 0 end
