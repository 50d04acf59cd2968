-- Head of the limiters' scripts. All numbers except those of a warm-up are whole. Lua's floats
-- hold them exactly below 2^53; `owed` exceeds that only if quotas of very different rates
-- share a key, and is then rounded up by a part in 2^52.
--
-- A script is executed as a whole at each call, and creating its functions is much of the work. A
-- function costs more for each outer local that it uses, so there are few, and the data of the
-- current key is in tables.

-- A state is a string: the letter of its algorithm, the end of the key's penalty or 0, the last
-- instant of its time, then the algorithm's own numbers.
local HEAD = 17
local OWN = 74 -- offset of the algorithm's own numbers in an argument, see run.lua
local MINUTE = 60000000
local algorithms = {}

-- The time, and how many milliseconds a state is kept after it is that of a new key. Of the
-- current key: the names of its states and of the one in use, the kind of ask, the letter and
-- limit of its quota, whether it is only tried, the time of its state, the end of its penalty,
-- whether it has a state, whether the state has to be written, and whether the time was dated
-- back.
local on = {
  now = now, spare = spare, base = '', own = '', key = '', kind = 0, letter = '', limit = 0, trial = false,
  t = 0, lock = 0, known = false, dirty = false, back = false,
}

-- Returns the beginning of the state of the quota's algorithm, or '' without one, and sets on.key
-- to its key, existing or not. Each algorithm has its own state: the first one under the key
-- itself, others under the key and their letter.
local function read()
  local state = redis.call('GETRANGE', on.base, 0, 319)
  on.key, on.known = on.base, true
  if state:sub(1, 1) == on.letter then return state end
  local own = redis.call('GETRANGE', on.own, 0, 319)
  on.known = own ~= ''
  if own ~= '' or state ~= '' then on.key = on.own end
  return own
end

-- Sets the time of a state, which continues from its last instant. If the clock is behind that by
-- up to a minute, time stands still. Further behind, it is another clock: returns by how much the
-- state's instants are too late, else 0. Time that the caller dates back begins at the state's
-- last instant.
local function begin(lock, last)
  local now = on.now
  on.t, on.lock, on.dirty = now, lock, false
  if now >= last then return 0 end
  if last - now <= MINUTE or on.back then
    on.t = last
    return 0
  end
  on.dirty = true
  if lock > 0 then on.lock = math.max(0, lock - (last - now)) end
  return last - now
end

-- Returns the number of milliseconds to keep a state that becomes a new key's after this many
-- microseconds.
local function ttl(after)
  return math.ceil(math.min(math.max(after, on.lock - on.t), WHOLE) / 1000) + on.spare
end

-- Converts a time from the state's clock to one from now, which may be behind.
local function seen(after) return after > 0 and math.min(after + on.t - on.now, WHOLE) or 0 end
