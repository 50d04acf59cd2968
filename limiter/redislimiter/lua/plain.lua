-- Handles the common case without the functions that follow, since creating them is most of the
-- work of a call. That is a take from a bucket that was last asked under the same rate, without a
-- penalty, shaping or reservations. Keys are handled in order up to the first one that is
-- anything else. The functions of bucket.lua give the same results, in a quarter to a third more
-- time (one key, ten keys).
--
-- Asks that take all or nothing are written once all of them are known to be allowed. `held` has
-- the states to write, and the place of the first of these asks.
local held, denied = nil, false
for k = 1, #ARGV - 1 do
  local asked = ARGV[k + 1]
  local letter = asked:sub(1, 1)
  if letter ~= 'b' and letter ~= 'l' then break end
  local _, kind, n, keep, _, _, _, penalty, limit, _, earn, cost, _, _, shape = struct.unpack('<c1dddddddddddddd', asked)
  local together = kind == TOGETHER
  if kind ~= 0 and not together or n < 1 or penalty > 0 or shape > 0 then break end
  local state = redis.pcall('GETRANGE', KEYS[at], 0, 319)
  if type(state) ~= 'string' or #state ~= 49 or state:sub(1, 1) ~= letter then break end
  local _, line, last, earned, costed, due, owed = struct.unpack('<c1dddddd', state)
  if earned ~= earn or costed ~= cost or due < 0 or last > now then break end
  local passed = now - last
  if passed >= math.ceil(owed / earn) then owed = 0 else owed = owed - passed * earn end
  local code, retry, taken, mark = 0, 0, 0, 0
  if together then
    held = held or {done = done, at = at}
    if held[KEYS[at]] then break end -- a key that is asked for twice
    held[KEYS[at]] = true
    denied = denied or n + keep > limit or owed + (n + keep) * cost > limit * cost
  end
  if n + keep <= limit then
    local missing = owed + (n + keep) * cost - limit * cost
    if missing > 0 then
      retry = math.min(math.ceil(missing / earn), WHOLE)
    else
      owed, line = owed + n * cost, line + n
      code, taken, mark = 1, n, line
      local ttl = math.ceil(math.min(math.ceil(owed / earn), WHOLE) / 1000) + spare
      local wrote = struct.pack('<c1dddddd', letter, line, now, earn, cost, due % 1 > 0 and due or limit, owed)
      if together then
        held[#held + 1] = {k, at, wrote, ttl, limit, owed - n * cost, earn, cost}
      else
        wrote = redis.pcall('SET', KEYS[at], wrote, 'PX', ttl)
        if wrote.err then break end
      end
    end
  end
  local fresh = math.min(math.ceil(owed / earn), WHOLE)
  answer[k] = struct.pack('<ddddddd', code, math.max(0, limit - math.ceil(owed / cost)), retry, fresh, 0, taken, mark)
  done, at = k, at + 2
end
if held and done < #ARGV - 1 then
  done, at = held.done, held.at
elseif held then
  for i = 1, #held do
    local k, place, state, ttl, limit, owed, earn, cost = unpack(held[i])
    if denied then
      answer[k] = struct.pack('<ddddddd', 1, math.max(0, limit - math.ceil(owed / cost)), 0, math.min(math.ceil(owed / earn), WHOLE), 0, 0, 0)
    elseif redis.pcall('SET', KEYS[place], state, 'PX', ttl).err then
      done, at = k - 1, place
      break
    end
  end
end
if done == #ARGV - 1 then return struct.pack('<d', now) .. (done == 1 and answer[1] or table.concat(answer)) end
