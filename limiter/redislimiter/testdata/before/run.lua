-- Does what is asked, key by key. Of each: the letter of the algorithm, kind, n, keep,
-- within, mark, penalty, limit, whether denials count, then the algorithm's own, packed
-- as floats. The answer is packed likewise: the time, then of each key what came of it,
-- permits that remain, times until a retry and until all is as new, delay, permits
-- taken, and their mark.
local TAKE, PEEK, ATMOST, RESERVE, CHARGE, RETURN, FORGET = 0, 1, 2, 3, 4, 5, 6
local DENIED, ALLOWED, LOCKED, AGAIN = 0, 1, 2, 3

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
  return ALLOWED, 0, delay, n, a.take(n, wait)
end

local answer = {}
for k = 1, #KEYS do
  local asked = ARGV[k + 1]
  local letter, kind, n, keep, within, mark, penalty, limit, counts = struct.unpack('<c1dddddddd', asked)
  on.key, on.letter, on.limit = KEYS[k], letter, limit
  if kind == FORGET then redis.call('DEL', on.key) end
  local a, locked = algorithms[letter], 0
  local known = a.open(asked)
  if penalty > 0 then locked = math.min(math.max(0, on.lock - on.t), penalty) end
  local code, retry, delay, taken, took = DENIED, 0, 0, 0, 0
  if not known then
    code, took, on.dirty = AGAIN, on.t, false -- about which time it has to be told periods
  elseif kind == FORGET then
    code = ALLOWED
  elseif n < 0 then
    code = DENIED
  elseif kind == CHARGE or kind == RETURN then
    code, on.dirty = ALLOWED, on.dirty or n > 0
    if n > 0 and kind == CHARGE then taken, took = a.charge(n) elseif n > 0 then a.giveback(n, mark) end
  elseif locked > 0 then
    code, retry = LOCKED, seen(locked)
  elseif n == 0 then
    code = ALLOWED
  else
    code, retry, delay, taken, took = take(a, kind, n, keep, within, counts == 1)
    if retry > 0 and penalty > 0 and kind ~= PEEK then
      on.lock, on.dirty, locked = on.t + penalty, true, penalty
      retry = math.max(retry, seen(locked))
    end
  end
  local free, fresh = 0, 0
  if known then free, fresh = math.max(0, a.free()), math.max(seen(a.fresh()), seen(locked)) end
  if code == LOCKED then free = 0 end
  answer[k] = struct.pack('<ddddddd', code, free, retry, fresh, delay, taken, took)
  if on.dirty then a.save() end
end
return struct.pack('<d', on.now) .. (#answer == 1 and answer[1] or table.concat(answer))
