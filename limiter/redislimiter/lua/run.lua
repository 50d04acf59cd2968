-- Executes the asks of the remaining keys, one by one. Asks that take all or nothing are tried
-- first: a denial has its effects, and if there is none all of them take. Each argument packs, as
-- floats after the letter of the algorithm: kind, n, keep, within, mark, the time when the marked
-- permits were taken, penalty, limit, whether denials count, then the algorithm's own numbers.
--
-- The reply packs the time, then for each key the outcome, remaining permits, times until a retry
-- and until a new key's state, delay, permits taken, and their mark. An error concerns one key,
-- and the others are executed nevertheless. The reply is then a list: the number of deleted keys
-- of a foreign type, and a list of the packed numbers and each key's error in order.
--
-- KEYS holds for each ask: the key; the key with the algorithm's letter; for FORGET, the keys of
-- the other algorithms; with a penalty, or for FORGET, the lock that all algorithms share, with
-- its end and the time when that was written; and for a CHARGE with a mark, the caller's earlier
-- charges.
--
-- A CHARGE with a mark is for permits that were taken `within` ago. It may be sent again, under
-- the same mark and for as many permits or more, and then charges only the additional ones. The
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

-- Takes n > 0 permits if possible, or none if only the outcome is wanted. A trial takes none
-- either, but a denial of it has all effects of a denial. Returns the outcome, retry (0 for
-- never), delay, taken, mark.
local function take(a, kind, n, keep, within, counts, none)
  local asked = n
  if kind == ATMOST then n = math.max(1, math.min(n, a.free() - keep)) end
  if n + keep > on.limit then return DENIED, 0, 0, 0, 0 end
  local wait, line = a.wait(n + keep), a.line and a.line()
  if wait > 0 and counts and not none and (kind == TAKE or kind == ATMOST) then
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
  end
  if none or on.trial then return ALLOWED, 0, delay, 0, 0 end
  on.dirty = true
  return ALLOWED, 0, delay, n, a.take(n, line or wait)
end

-- Writes a key's lock that ends at an instant, this far ahead.
local function lock_until(lock, ends, ahead)
  redis.call('SET', lock, struct.pack('<dd', ends, on.now), 'PX', math.ceil(ahead / 1000) + on.spare)
end

-- Returns how many of n permits that were taken elsewhere are not charged yet, and the record to
-- keep once they are.
local function uncharged(key, mark, n)
  local last, before = redis.call('GET', key), 0
  if last and #last == 16 then
    local marked, charged = struct.unpack('<dd', last)
    if marked > mark then return 0 end
    if marked == mark then before = charged end
  end
  return math.max(0, n - before), struct.pack('<dd', mark, math.max(n, before))
end

-- Executes an ask, and returns its outcome. An ask that takes all or nothing is only tried,
-- unless it is `real`. With a place, it returns the `back` permits that it took just now.
local function ask(k, real, back, place)
  local asked = ARGV[k + 1]
  local letter, kind, n, keep, within, mark, since, penalty, limit, counts = struct.unpack('<c1ddddddddd', asked)
  local charged, kept
  on.trial = kind >= TOGETHER and not real
  if kind >= TOGETHER then kind = kind - TOGETHER end
  on.back = kind == CHARGE and mark > 0
  on.now = on.back and now - within or now
  if place then kind, n, mark, since, keep = RETURN, back, place, on.now, 0 end
  on.base, on.own, on.kind, on.letter, on.limit = KEYS[at], KEYS[at + 1], kind, letter, limit
  local first, lock = at, KEYS[at + 2]
  if kind == FORGET then -- set before anything can fail, so that the next ask finds its keys
    lock, at = KEYS[at + 7], at + 8
    redis.call('DEL', unpack(KEYS, first, first + 7))
  else
    at = at + (penalty > 0 and 3 or 2)
    if on.back then
      charged, at = KEYS[at], at + 1
      if n > 0 then n, kept = uncharged(charged, mark, n) end
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
        lock_until(lock, ends, math.max(0, ends - on.now))
      end
      on.lock = math.max(on.lock, ends)
    end
    if on.lock - on.t > penalty then -- it dates from a longer penalty, and ends like one that starts now
      on.lock, on.dirty = on.t + penalty, on.dirty or on.known
      lock_until(lock, on.lock, penalty)
    end
    locked = math.max(0, on.lock - on.t)
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
  elseif n == 0 then
    if locked > 0 then code, retry = LOCKED, seen(locked) else code = ALLOWED end
  else
    code, retry, delay, taken, took = take(a, kind, n, keep, within, counts == 1, kind == PEEK or locked > 0)
    if locked > 0 then -- a denial at the end of the lock would start another one
      retry = (code == ALLOWED or retry > 0) and math.max(retry, seen(locked)) or 0
      code, delay = LOCKED, 0
    elseif retry > 0 and penalty > 0 and kind ~= PEEK then
      on.lock, on.dirty, locked = on.t + penalty, true, penalty
      retry = math.max(retry, seen(locked))
      lock_until(lock, on.lock, penalty)
    end
  end
  local free, fresh = 0, 0
  if told then free, fresh = math.max(0, a.free()), math.max(seen(a.fresh()), seen(locked)) end
  if code == LOCKED then free = 0 end
  answer[k] = struct.pack('<ddddddd', code, free, retry, fresh, delay, taken, took)
  if on.dirty then a.save() end
  if kept then redis.call('SET', charged, kept, 'PX', 60000) end
  return code
end

local healed, texts = 0, nil
local function try(k, real, back, place)
  local first, code, text = at, nil, nil
  for try = 1, 2 do
    local ok, err = pcall(ask, k, real, back, place)
    code, text = err, not ok and (type(err) == 'table' and err.err or tostring(err))
    if try == 2 or not text or not text:find('WRONGTYPE', 1, true) then break end
    -- A key of a foreign type is deleted: no other program's keys have such names.
    for i = first, at - 1 do
      local found = redis.pcall('GET', KEYS[i])
      if type(found) == 'table' and found.err then redis.call('DEL', KEYS[i]) end
    end
    healed, at = healed + 1, first
  end
  if not text then return code end
  texts = texts or {}
  texts[k] = text
  answer[k] = struct.pack('<ddddddd', FAILED, 0, 0, 0, 0, 0, 0)
  return FAILED
end

local together, denied, again = {}, false, false
for k = done + 1, #ARGV - 1 do
  local first = at
  local code = try(k)
  if on.trial and code ~= FAILED then
    together[#together + 1] = {k, first, code, answer[k]}
    denied, again = denied or code == DENIED or code == LOCKED, again or code == AGAIN
  end
end
for i = 1, #together do
  local k, first, tried = unpack(together[i], 1, 3)
  if denied and tried == AGAIN then
    answer[k] = struct.pack('<ddddddd', ALLOWED, 0, 0, 0, 0, 0, 0) -- unknown, but without effect
  elseif again and not denied then
    answer[k] = struct.pack('<ddddddd', AGAIN, 0, 0, 0, 0, 0, on.now)
  elseif not denied then
    at = first
    local code = try(k, true)
    if code == DENIED or code == LOCKED then -- denied because of another ask of the key
      -- A fixed window that has begun in this way is not undone.
      for j = i - 1, 1, -1 do
        local k, first, _, answered = unpack(together[j])
        local got, _, _, _, _, n, mark = struct.unpack('<ddddddd', answer[k])
        at = first
        if n > 0 then got = try(k, true, n, mark) end
        if got ~= FAILED then answer[k] = answered end
      end
      break
    end
  end
end
local reply = struct.pack('<d', now) .. (#answer == 1 and answer[1] or table.concat(answer))
if healed == 0 and not texts then return reply end
local list = {reply}
for k = 1, #ARGV - 1 do
  if texts and texts[k] then list[#list + 1] = texts[k] end
end
return {healed, list}
