-- Buckets: of tokens, and leaky ones. What is missing is kept as so many units that a
-- microsecond earns `earn` of them and a permit costs `cost`: the rate as a reduced
-- fraction, without any rounding. A leaky bucket is a token bucket upside down: what
-- is missing of the one has not yet left the other. With `shape` it is a line: what is
-- admitted leaves when all before it has.
do
  local b = {earn = 0, cost = 0, full = 0, most = 0, owed = 0, shape = false}

  algorithms.b = {
    open = function(asked)
      local earn, cost, most, first, shape = struct.unpack('<ddddd', asked, OWN)
      b.earn, b.cost, b.full, b.most, b.shape = earn, cost, on.limit * cost, most, shape == 1
      local state = redis.call('GET', on.key)
      if not state or #state ~= HEAD + 32 or state:sub(1, 1) ~= on.letter then
        begin(0, 0)
        b.owed = first * cost
        on.dirty = first > 0
        return true
      end
      local _, lock, last, earned, costed, limit, owed = struct.unpack('<c1dddddd', state)
      local passed = begin(lock, last) == 0 and on.t - last or 0
      if passed >= math.ceil(owed / earned) then owed = 0 else owed = owed - passed * earned end
      if earned ~= earn or costed ~= cost or limit ~= on.limit then
        local rest = owed % costed
        owed = math.min((owed - rest) / costed * cost + math.ceil(rest * cost / costed), b.full)
        on.dirty = true
      end
      b.owed = owed
      return true
    end,

    free = function() return on.limit - math.ceil(b.owed / b.cost) end,

    wait = function(n) return math.ceil(math.max(0, b.owed + n * b.cost - b.full) / b.earn) end,

    line = function() return b.shape and math.ceil(b.owed / b.earn) end,

    take = function(n)
      b.owed = b.owed + n * b.cost
      return 0
    end,

    charge = function(n)
      local taken = math.min(n, math.floor(math.max(0, b.most - b.owed) / b.cost))
      b.owed = math.min(b.owed + n * b.cost, math.max(b.most, b.owed))
      return taken, 0
    end,

    giveback = function(n) b.owed = math.max(0, b.owed - n * b.cost) end,

    fresh = function() return math.ceil(b.owed / b.earn) end,

    save = function()
      local state = struct.pack('<c1dddddd', on.letter, on.lock, on.t, b.earn, b.cost, on.limit, b.owed)
      redis.call('SET', on.key, state, 'PX', ttl(math.ceil(b.owed / b.earn)))
    end,
  }
  algorithms.l = algorithms.b
end
