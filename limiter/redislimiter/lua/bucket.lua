-- Token and leaky buckets. `owed` is the number of units that a bucket lacks: a microsecond earns
-- `earn` of them and a permit costs `cost`. That is the rate as a reduced fraction, without
-- rounding. A leaky bucket is a token bucket upside down: the permits that one lacks have not yet
-- leaked out of the other. With `shape` it is a queue: each admission leaves after all before it.
--
-- The state belongs to no quota. The number of missing permits stays, even beyond the burst, for
-- charges and reservations; burst and rate are those of the quota that asks. On conversion to
-- another quota's units, owed is rounded up by less than one unit, which is less than a
-- microsecond earns.
--
-- Reservations keep their promised times. Up to `due`, the time of the last of them, the rate is
-- the one under which they were made: `slow` units in a microsecond at `dear` units a permit. A
-- slow of 0 means the asker's own rate. A faster rate would let later takes be used before them.
--
-- Permits form a line in the order in which they were taken, and are earned in that order. `line`
-- is the place of the last one, and a mark is the place of the last permit of a take. The missing
-- permits are always the end of the line. So a return counts as one from the head of the line,
-- whatever its place was: later takes move up. Earlier ones may get back too little, but never
-- too much.
--
-- Since a take, no more was earned of it than of all. So at least the rest is returned, unless
-- the rate has changed since then, at `turn`. Only the final return of the last take shortens the
-- line instead: takes that are returned in reverse order are returned in full. A `keep` above 0
-- means that more of the same take may be returned; its mark must then not become that of the
-- next take. A mark of 0 is the last.
--
-- Instances may hold permits of the bucket, see lease.lua. These count as missing, and are not
-- earned while they are held: owed is at least `held` permits until `held_until`. A state that
-- lacks the two has none held.
--
-- The turn has no field of its own, so that the version before can read the state. It is stored,
-- with a half added, in the field of the limit, which no longer matters. While that field holds a
-- `due`, only the half of a turn is kept: it is then as if the rate had changed now.
do
  local b = {earn = 0, cost = 0, full = 0, most = 0, owed = 0, due = 0, slow = 0, dear = 0, line = 0, turn = 0, shape = false, held = 0, held_until = 0}

  -- Converts units at `costed` a permit to units at `cost` a permit.
  local function converted(owed, costed, cost)
    local rest = owed % costed
    local product = rest * cost
    owed = (owed - rest) / costed * cost + math.ceil(product / costed)
    if product >= WHOLE then owed = owed + 1 end
    return owed < WHOLE and owed or owed * (1 + 2 ^ -52)
  end

  -- Returns the time in which this many units are earned.
  local function after(units)
    if b.slow == 0 then return math.ceil(units / b.earn) end
    local rate = b.slow / b.dear * b.cost
    local first = (b.due - on.t) * rate
    if units <= first then return math.ceil(units / rate) end
    return b.due - on.t + math.ceil((units - first) / b.earn)
  end

  algorithms.b = {
    open = function(asked)
      local earn, cost, most, first, shape = struct.unpack('<ddddd', asked, OWN)
      b.earn, b.cost, b.full, b.most, b.shape = earn, cost, on.limit * cost, most, shape == 1
      local state = read()
      if #state ~= HEAD + 32 and #state ~= HEAD + 48 then
        begin(0, 0)
        b.owed, b.due, b.slow, b.line, b.turn, b.held = first * cost, 0, 0, math.floor(on.t / 2), 0, 0
        on.dirty = first > 0
        return true
      end
      -- `due` is stored negated. If nothing is reserved, the limit is stored in its place.
      local _, line, last, earned, costed, due, owed = struct.unpack('<c1dddddd', state)
      local back = begin(0, last)
      b.turn = 0
      if due % 1 > 0 then b.turn = due < 0 and on.t or due - 0.5 end
      if back > 0 then b.turn, last = last + 1, on.t end
      due = due < 0 and math.floor(-due) - back or 0
      b.line, b.due, b.slow = line, due > on.t and due or 0, 0
      local held, till = 0, 0
      if #state == HEAD + 48 then held, till = struct.unpack('<dd', state, HEAD + 33) end
      till = till - back
      if earned ~= earn or costed ~= cost then
        local at = math.min(due, on.t)
        if at > last then owed, last = math.max(math.min(owed, held * costed), owed - (at - last) * earned), at end
        owed = converted(owed, costed, cost)
        if due > on.t then b.slow, b.dear, last = earned, costed, on.t end
        b.turn = math.max(b.turn, on.t)
      end
      b.held, b.held_until = till > on.t and held or 0, till
      if held > 0 and till > last then
        local least, to = math.min(owed, held * cost), math.min(on.t, till)
        owed, last = to - last >= math.ceil((owed - least) / earn) and least or owed - (to - last) * earn, math.max(last, to)
      end
      local passed = on.t - last
      if passed >= math.ceil(owed / earn) then b.owed = 0 else b.owed = owed - passed * earn end
      return true
    end,

    bucket = b,

    free = function() return on.limit - math.ceil(b.owed / b.cost) end,

    wait = function(n) return after(math.max(0, b.owed + n * b.cost - b.full)) end,

    line = function() return b.shape and after(b.owed) end,

    take = function(n, delay)
      b.owed, b.line = b.owed + n * b.cost, b.line + n
      if b.slow > 0 and delay > 0 and b.earn * b.dear < b.slow * b.cost then b.slow = 0 end
      if b.slow == 0 and delay > 0 then b.due = math.max(b.due, on.t + delay) end
      return b.line
    end,

    charge = function(n)
      local taken = math.min(n, math.floor(math.max(0, b.most - b.owed) / b.cost))
      local owed = math.min(b.owed + n * b.cost, math.max(b.most, b.owed))
      -- A permit that is partly owed has a whole place in the line: permits before it must not
      -- get that part back.
      b.owed, b.line = owed, b.line + math.ceil((owed - b.owed) / b.cost)
      return taken, b.line
    end,

    giveback = function(n, mark, since, keep)
      local last = mark == b.line or mark == 0
      local left = (last or since > 0 and since == on.now) and b.owed or b.owed - (b.line - mark) * b.cost
      if since > 0 and b.turn <= since and since <= on.t then left = math.max(left, n * b.cost - (on.t - since) * b.earn) end
      local back = math.max(0, math.min(n * b.cost, left, b.owed - b.held * b.cost))
      b.owed = b.owed - back
      if last and keep == 0 then b.line = b.line - math.floor(back / b.cost) end
    end,

    fresh = function() return after(b.owed) end,

    save = function()
      local earn, cost, owed = b.earn, b.cost, b.owed
      if b.slow > 0 then earn, cost, owed = b.slow, b.dear, converted(owed, cost, b.dear) end
      local due = b.turn > 0 and b.turn + 0.5 or on.limit
      if b.due > 0 then due = b.turn > 0 and -b.due - 0.5 or -b.due end
      local state = struct.pack('<c1dddddd', on.letter, b.line, on.t, earn, cost, due, owed)
      local left = math.max(after(b.owed), b.due - on.t)
      if b.held > 0 then
        state, left = state .. struct.pack('<dd', b.held, b.held_until), math.max(left, b.held_until - on.t)
      end
      redis.call('SET', on.key, state, 'PX', ttl(left))
    end,
  }
  algorithms.l = algorithms.b
end
