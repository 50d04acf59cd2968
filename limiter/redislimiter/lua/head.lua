-- Head of the limiters' scripts. All numbers but those of a warm-up are whole. Below 2^53
-- Lua's floats hold them exactly; what is owed is beyond that only where quotas of very
-- different rates share a key, and is then rounded up by a part in 2^52.
--
-- A script is run as a whole each time, and to make its functions is much of the work.
-- A function costs the more the more locals outside of it it uses; so there are few,
-- and what is known of the key at hand stands in tables.

-- A state is a string: the letter of its algorithm; the end of the key's penalty, 0:
-- none; the last instant of its time; then what the algorithm keeps.
local HEAD = 17
local OWN = 74 -- where the algorithm's own begins in what is asked, see below
local MINUTE = 60000000
local algorithms = {}

-- The time, and for how many milliseconds a state is kept after it is as new. The key at
-- hand: the names of its states, the one that is used, what is asked, the letter and the
-- limit of its quota, what time it is for its state, the end of its penalty, whether it
-- has a state, and whether that has to be written.
local on = {
  now = now, spare = spare, base = '', own = '', key = '', kind = 0, letter = '', limit = 0,
  t = 0, lock = 0, known = false, dirty = false,
}

-- Returns the beginning of the state of the quota's algorithm, '' if there is none, and
-- sets on.key to where it is or would be. Each algorithm has a state of its own: under
-- the key itself if it was there first, which is so wherever there is one alone, else
-- under the key and its letter. Where there is none what stands under the key follows.
local function read()
  local state = redis.call('GETRANGE', on.base, 0, 319)
  on.key, on.known = on.base, true
  if state:sub(1, 1) == on.letter then return state end
  local own = redis.call('GETRANGE', on.own, 0, 319)
  on.known = own ~= ''
  if own ~= '' or state ~= '' then on.key = on.own end
  return own, state
end

-- Begins the time of a state. It goes on from its last instant, where there is one: up
-- to a minute behind that, time stands still. By more it is another clock: then the
-- state's instants are by so much too late, and that is what is returned, else 0.
local function begin(lock, last)
  local now = on.now
  on.t, on.lock, on.dirty = now, lock, false
  if now >= last then return 0 end
  if last - now <= MINUTE then
    on.t = last
    return 0
  end
  on.dirty = true
  if lock > 0 then on.lock = math.max(0, lock - (last - now)) end
  return last - now
end

-- How many milliseconds a state is kept that is as new after so many microseconds.
local function ttl(after)
  return math.ceil(math.min(math.max(after, on.lock - on.t), WHOLE) / 1000) + on.spare
end

-- A time from the state's on as seen from now, which may be behind.
local function seen(after) return after > 0 and math.min(after + on.t - on.now, WHOLE) or 0 end
