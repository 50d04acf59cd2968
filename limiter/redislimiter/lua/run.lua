-- Does what is asked, key by key. Of each: the letter of the algorithm, kind, n, keep,
-- within, mark, when that was taken, penalty, limit, whether denials count, then the
-- algorithm's own, packed
-- as floats. The answer is packed likewise: the time, then of each key what came of it,
-- permits that remain, times until a retry and until all is as new, delay, permits
-- taken, and their mark. An error is that of one key: the others are done all the same,
-- and the answer is then a list: how many keys were of a foreign type and are as new, and
-- a list of the packed numbers and each key's error in order.
--
-- KEYS are, of each: the key itself; the one of the algorithm; to forget, those of the
-- other algorithms; with a penalty, or to forget, the one of the lock. That is when it
-- ends, and when that was written: it is for all algorithms.
local TAKE, PEEK, ATMOST, RESERVE, CHARGE, RETURN, FORGET = 0, 1, 2, 3, 4, 5, 6
local DENIED, ALLOWED, LOCKED, AGAIN, FAILED = 0, 1, 2, 3, 4

-- Takes n above 0, if that may be: what came of it, retry, delay, taken, mark. No
-- retry: never.
local function take(a, kind, n, keep, within, counts)
  local asked = n
  if kind == ATMOST then n = math.max(1, math.min(n, a.free() - keep)) end
  if n + keep > on.limit then return DENIED, 0, 0, 0, 0 end
  local wait, line = a.wait(n + keep), a.line and a.line()
  if wait > 0 and counts and (kind == TAKE or kind == ATMOST) then
    a.charge(asked)
    on.dirty = true
    wait = a.wait(n + keep)
  end
  local delay = seen(line or wait)
  if kind == RESERVE then
    local full = a.full and a.full()
    if line and wait > 0 then return DENIED, math.max(seen(wait), delay - within), 0, 0, 0 end
    if full or delay > within then return DENIED, math.max(delay - within, full or 0, 1), 0, 0, 0 end
  elseif wait > 0 then
    return DENIED, seen(wait), 0, 0, 0
  elseif kind == PEEK then
    return ALLOWED, 0, delay, 0, 0
  end
  on.dirty = true
  return ALLOWED, 0, delay, n, a.take(n, line or wait)
end

-- The end of the key's lock, as far as the states do not know it.
local function shared_lock(key)
  local lock = redis.call('GET', key)
  if not lock or #lock ~= 16 then return 0 end
  local ends, written = struct.unpack('<dd', lock)
  if written - on.now <= MINUTE then return ends end
  ends = ends - (written - on.now) -- another clock
  redis.call('SET', key, struct.pack('<dd', ends, on.now), 'PX', math.ceil(math.max(0, ends - on.now) / 1000) + on.spare)
  return ends
end

local answer, at = {}, 1
local function ask(k)
  local asked = ARGV[k + 1]
  local letter, kind, n, keep, within, mark, since, penalty, limit, counts = struct.unpack('<c1ddddddddd', asked)
  on.base, on.own, on.kind, on.letter, on.limit = KEYS[at], KEYS[at + 1], kind, letter, limit
  local first, lock = at, KEYS[at + 2]
  if kind == FORGET then -- an error must not leave the next key where this one begins
    lock, at = KEYS[at + 7], at + 8
    redis.call('DEL', unpack(KEYS, first, first + 7))
  else
    at = at + (penalty > 0 and 3 or 2)
  end
  local a, locked = algorithms[letter], 0
  local told = a.open(asked)
  if penalty > 0 then
    if kind ~= FORGET then on.lock = math.max(on.lock, shared_lock(lock)) end
    locked = math.min(math.max(0, on.lock - on.t), penalty)
  end
  local code, retry, delay, taken, took = DENIED, 0, 0, 0, 0
  if not told then
    code, took, on.dirty = AGAIN, on.t, false -- about which time it has to be told periods
  elseif kind == FORGET then
    code = ALLOWED
  elseif n < 0 then
    code = DENIED
  elseif kind == CHARGE then
    code, on.dirty = ALLOWED, on.dirty or n > 0
    if n > 0 then taken, took = a.charge(n) end
  elseif kind == RETURN then
    code, on.dirty = ALLOWED, on.known and (on.dirty or n > 0)
    if n > 0 and on.known then a.giveback(n, mark, since) end
  elseif locked > 0 then
    code, retry = LOCKED, seen(locked)
  elseif n == 0 then
    code = ALLOWED
  else
    code, retry, delay, taken, took = take(a, kind, n, keep, within, counts == 1)
    if retry > 0 and penalty > 0 and kind ~= PEEK then
      on.lock, on.dirty, locked = on.t + penalty, true, penalty
      retry = math.max(retry, seen(locked))
      redis.call('SET', lock, struct.pack('<dd', on.lock, on.now), 'PX', math.ceil(penalty / 1000) + on.spare)
    end
  end
  local free, fresh = 0, 0
  if told then free, fresh = math.max(0, a.free()), math.max(seen(a.fresh()), seen(locked)) end
  if code == LOCKED then free = 0 end
  answer[k] = struct.pack('<ddddddd', code, free, retry, fresh, delay, taken, took)
  if on.dirty then a.save() end
end

-- A key that is of another type than ours is nobody's: no other program's keys have such
-- names. It is deleted, and is as new.
local function heal(from, to)
  for i = from, to do
    local found = redis.pcall('GET', KEYS[i])
    if type(found) == 'table' and found.err then redis.call('DEL', KEYS[i]) end
  end
end

local function text_of(err) return type(err) == 'table' and err.err or tostring(err) end

local healed, errors = 0, nil
for k = 1, #ARGV - 1 do
  local first = at
  local ok, err = pcall(ask, k)
  if not ok and text_of(err):find('WRONGTYPE', 1, true) then
    heal(first, at - 1)
    healed, at = healed + 1, first
    ok, err = pcall(ask, k)
  end
  local text = not ok and text_of(err)
  if text then
    errors = errors or {''}
    errors[#errors + 1] = text
    answer[k] = struct.pack('<ddddddd', FAILED, 0, 0, 0, 0, 0, 0)
  end
end
local reply = struct.pack('<d', on.now) .. (#answer == 1 and answer[1] or table.concat(answer))
if healed + (errors and 1 or 0) == 0 then return reply end
errors = errors or {''}
errors[1] = reply
return {healed, errors}
