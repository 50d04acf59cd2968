-- The token bucket that warms up: Guava's SmoothWarmingUp, with bursts. An idle bucket stores
-- permits. The more it stores, the more the next one costs, in microseconds: from the cold price
-- with all stored down to the stable price at the threshold and below. Takes are paid for
-- afterwards: `lead` is the price that is not paid yet. It may be as much as a burst costs at the
-- stable price, or more for a single take if the lead was 0. These numbers are fractions; EASE
-- allows for their rounding.
--
-- Under another quota the lead is worth as many permits at that quota's stable price, and the
-- stored permits are the same fraction of the maximum. Up to `due`, when the last reservation is
-- used, the lead is paid for at the price under which it was made, `slow`; 0 means the asker's
-- own. `line` decreases only on a final return. It is the instant, which a mark names, at which
-- the latest take would be paid for if nothing had been returned.
do
  local EASE = 0.001
  local w = {stable = 0, threshold = 0, most = 0, slope = 0, cool = 0, budget = 0, stored = 0, lead = 0, due = 0, slow = 0, line = 0}

  -- Returns the price of n permits: the area under the price of the stored ones, and the stable
  -- price for the rest.
  local function cost(n)
    local above = math.max(0, w.stored - w.threshold)
    local dear = math.min(n, above)
    return n * w.stable + dear * w.slope * (above - dear / 2)
  end

  -- Returns the most permits, up to `most`, that cost no more than `room`.
  local function affordable(most, room)
    local low, high = 0, most
    while low < high do
      local middle = math.ceil((low + high) / 2)
      if cost(middle) <= room + EASE then low = middle else high = middle - 1 end
    end
    return low
  end

  -- Returns the time in which this much of the lead is paid for.
  local function after(lead)
    if w.slow == 0 then return math.ceil(lead) end
    local first = (w.due - on.t) * w.stable / w.slow
    if lead <= first then return math.ceil(lead * w.slow / w.stable) end
    return w.due - on.t + math.ceil(lead - first)
  end

  local function fresh()
    local cold = (w.most - w.stored) * w.cool
    return w.slow == 0 and math.ceil(w.lead + cold) or after(w.lead) + math.ceil(cold)
  end

  local function take(n, delay)
    local price = cost(n)
    w.lead, w.line = w.lead + price, w.line + price
    w.stored = w.stored - math.min(n, w.stored)
    if delay > 0 and w.stable > w.slow then w.slow = 0 end
    if delay > 0 and w.slow == 0 then w.due = math.max(w.due, on.t + delay) end
    return math.floor(w.line)
  end

  algorithms.W = {
    open = function(asked)
      local per, n, warm, factor = struct.unpack('<dddd', asked, OWN)
      local stable = per / n
      local threshold = warm / (stable * (factor - 1))
      local most = threshold + 2 * warm / (stable * (1 + factor))
      local cool, budget = warm / most, on.limit * stable
      w.stable, w.threshold, w.most, w.cool, w.budget = stable, threshold, most, cool, budget
      w.slope = stable * (factor - 1) / (most - threshold)
      w.stored, w.lead, w.due, w.slow, w.line = most, 0, 0, 0, 0
      local lock, last, former, priced, stored, lead, due, line, _ = 0, 0, most, stable, most, 0, 0, 0, nil
      local state = read()
      if #state == HEAD + 48 then
        _, lock, last, former, priced, stored, lead, due, line = struct.unpack('<c1dddddddd', state)
      end
      local back = begin(lock, last)
      if back > 0 then last, due, line = on.t, due - back, line - back end
      if former ~= most then stored = stored * most / former end
      if priced ~= stable then
        local at = math.max(last, math.min(due, on.t))
        stored, lead, last = stored + math.max(0, at - last - lead) / cool, math.max(0, lead - at + last), at
        line = line + math.max(0, lead * stable / priced - lead)
        lead = lead * stable / priced
        if due > on.t then w.slow, last = priced, on.t end
      end
      local passed = on.t - last
      w.stored = math.min(most, stored + math.max(0, passed - lead) / cool)
      w.lead = math.max(0, lead - passed)
      w.due, w.line = due > on.t and due or 0, w.lead > 0 and line or math.max(line, on.t)
      return true
    end,

    wait = function(n)
      local price = cost(n)
      if price > w.budget + EASE then return after(math.max(0, w.lead - EASE)) end
      return after(math.max(0, w.lead + price - w.budget - EASE))
    end,

    free = function()
      if w.lead <= EASE then return on.limit end
      return affordable(on.limit, w.budget - w.lead)
    end,

    take = take,

    -- If a permit exceeds the debt that is allowed, only the part of it that is paid for warms
    -- the bucket.
    charge = function(n)
      local room = math.max(0, w.budget + math.max(w.budget, MINUTE) - w.lead)
      if cost(n) <= room + EASE then return n, take(n, 0) end
      n = affordable(n, room)
      local part = n + math.max(0, room - cost(n)) / (cost(n + 1) - cost(n))
      w.lead, w.line, w.stored = w.lead + room, w.line + room, w.stored - math.min(part, w.stored)
      return n, math.floor(w.line)
    end,

    -- See bucket.lua.
    giveback = function(n, mark, since, keep)
      local last = mark == math.floor(w.line) or mark == 0
      local left = (last or since > 0 and since == on.now) and w.lead or w.lead - (w.line - mark)
      local back = math.max(0, math.min(n * w.stable, left, w.lead))
      w.lead = w.lead - back
      if last and keep == 0 then w.line = w.line - back end
    end,

    fresh = fresh,

    save = function()
      local price, lead = w.stable, w.lead
      if w.slow > 0 then price, lead = w.slow, lead * w.slow / price end
      local state = struct.pack('<c1dddddddd', on.letter, on.lock, on.t, w.most, price, w.stored, lead, w.due, w.line)
      redis.call('SET', on.key, state, 'PX', ttl(math.max(fresh(), w.due - on.t, math.ceil(w.line - on.t))))
    end,
  }
end
