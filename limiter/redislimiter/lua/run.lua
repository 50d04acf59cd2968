-- Executes the asks of the remaining keys, one by one. Each argument packs, as floats after
-- the letter of the algorithm: kind, n, keep, within, mark, when the marked permits were
-- taken, penalty, limit, whether denials count, then the algorithm's own numbers. The reply
-- packs the time, then for each key the outcome, remaining permits, times until a retry and
-- until a new key's state, delay, permits taken, and their mark. An error concerns one key,
-- and the others are executed all the same: the reply is then a list of how many keys of a
-- foreign type were deleted, and of a list of the packed numbers and each key's error in
-- order.
--
-- KEYS holds for each ask: the key; the key with the algorithm's letter; for FORGET, those of
-- the other algorithms; with a penalty, or for FORGET, the lock that all algorithms share: when
-- it ends, and when that was written; and for a CHARGE with a mark, what the caller has charged.
--
-- A CHARGE with a mark is for permits that were taken `within` ago. It may be sent again, under
-- the same mark and for as many permits or more, and charges those beyond the earlier ones. The
-- last mark and number of permits of a caller are kept for a minute.
local TAKE = 0
local PEEK = 1
local ATMOST = 2
local RESERVE = 3
local CHARGE = 4
local RETURN = 5
local FORGET = 6

local DENIED = 0
local ALLOWED = 1
local LOCKED = 2
local AGAIN = 3
local FAILED = 4

-- Takes n > 0 permits if possible. Returns the outcome, retry (0 for never), delay, taken,
-- mark.
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

-- Returns how many of n permits that were taken elsewhere are not charged yet, and what to keep
-- once they are.
local function uncharged(key, mark, n)
  local last, before = redis.call('GET', key), 0
  if last and #last == 16 then
    local marked, charged = struct.unpack('<dd', last)
    if marked > mark then return 0 end
    if marked == mark then before = charged end
  end
  return math.max(0, n - before), struct.pack('<dd', mark, math.max(n, before))
end

local function ask(k)
  local asked = ARGV[k + 1]
  local letter, kind, n, keep, within, mark, since, penalty, limit, counts = struct.unpack('<c1ddddddddd', asked)
  local charged, kept
  on.back = kind == CHARGE and mark > 0
  on.now = on.back and now - within or now
  on.base, on.own, on.kind, on.letter, on.limit = KEYS[at], KEYS[at + 1], kind, letter, limit
  local first, lock = at, KEYS[at + 2]
  if kind == FORGET then -- set before anything can fail, so that the next ask finds its keys
    lock, at = KEYS[at + 7], at + 8
    redis.call('DEL', unpack(KEYS, first, first + 7))
  else
    at = at + (penalty > 0 and 3 or 2)
    if on.back then
      charged, at = KEYS[at], at + 1
      n, kept = uncharged(charged, mark, n)
    end
  end
  local a, locked = algorithms[letter], 0
  local told = a.open(asked)
  if penalty > 0 then
    local shared = kind ~= FORGET and redis.call('GET', lock)
    if shared and #shared == 16 then -- the key's lock may end after the one in the state
      local ends, written = struct.unpack('<dd', shared)
      if written - on.now > MINUTE then -- another clock
        ends = ends - (written - on.now)
        redis.call('SET', lock, struct.pack('<dd', ends, on.now), 'PX', math.ceil(math.max(0, ends - on.now) / 1000) + on.spare)
      end
      on.lock = math.max(on.lock, ends)
    end
    locked = math.min(math.max(0, on.lock - on.t), penalty)
  end
  local code, retry, delay, taken, took = DENIED, 0, 0, 0, 0
  if not told then
    code, took, on.dirty = AGAIN, on.t, false -- the caller sends the periods about that time
  elseif kind == FORGET then
    code = ALLOWED
  elseif n < 0 then
    code = DENIED
  elseif kind == CHARGE then
    code, on.dirty = ALLOWED, on.dirty or n > 0
    if n > 0 then taken, took = a.charge(n) end
  elseif kind == RETURN then
    code, on.dirty = ALLOWED, on.known and (on.dirty or n > 0)
    if n > 0 and on.known then a.giveback(n, mark, since, keep) end
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
  if kept then redis.call('SET', charged, kept, 'PX', 60000) end
end

local healed, errors = 0, nil
for k = done + 1, #ARGV - 1 do
  local first, text = at, nil
  for try = 1, 2 do
    local ok, err = pcall(ask, k)
    text = not ok and (type(err) == 'table' and err.err or tostring(err))
    if try == 2 or not text or not text:find('WRONGTYPE', 1, true) then break end
    -- A key of a foreign type is deleted: no other program's keys have such names.
    for i = first, at - 1 do
      local found = redis.pcall('GET', KEYS[i])
      if type(found) == 'table' and found.err then redis.call('DEL', KEYS[i]) end
    end
    healed, at = healed + 1, first
  end
  if text then
    errors = errors or {''}
    errors[#errors + 1] = text
    answer[k] = struct.pack('<ddddddd', FAILED, 0, 0, 0, 0, 0, 0)
  end
end
local reply = struct.pack('<d', now) .. (#answer == 1 and answer[1] or table.concat(answer))
if healed + (errors and 1 or 0) == 0 then return reply end
errors = errors or {''}
errors[1] = reply
return {healed, errors}
