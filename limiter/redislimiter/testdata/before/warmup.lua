-- The token bucket that warms up: SmoothWarmingUp of Guava, with bursts. Permits that
-- are stored while it idles are dear, the dearer the more there are: to take one of them
-- costs from the cold price (all are stored) down to the stable one (at the threshold
-- and below it), in microseconds. What was taken has to be paid for: `lead` is how much
-- of that is ahead. As much may be ahead as a burst costs at the stable price, or more
-- for one that comes when nothing is. These numbers are fractions, and EASE is for
-- their rounding.
do
  local EASE = 0.001
  local w = {stable = 0, threshold = 0, most = 0, slope = 0, cool = 0, budget = 0, stored = 0, lead = 0}

  -- What it costs to take n: the area under the price of what is stored, and the stable
  -- price for the rest.
  local function cost(n)
    local above = math.max(0, w.stored - w.threshold)
    local dear = math.min(n, above)
    return n * w.stable + dear * w.slope * (above - dear / 2)
  end

  -- How many permits, at most so many, cost no more than there is room for.
  local function affordable(most, room)
    local low, high = 0, most
    while low < high do
      local middle = math.ceil((low + high) / 2)
      if cost(middle) <= room + EASE then low = middle else high = middle - 1 end
    end
    return low
  end

  local function fresh() return math.ceil(w.lead + (w.most - w.stored) * w.cool) end

  local function take(n)
    w.lead = w.lead + cost(n)
    w.stored = w.stored - math.min(n, w.stored)
    return 0
  end

  algorithms.w = {
    open = function(asked)
      local per, n, warm, factor = struct.unpack('<dddd', asked, OWN)
      local stable = per / n
      local threshold = warm / (stable * (factor - 1))
      local most = threshold + 2 * warm / (stable * (1 + factor))
      local cool, budget = warm / most, on.limit * stable
      w.stable, w.threshold, w.most, w.cool, w.budget = stable, threshold, most, cool, budget
      w.slope = stable * (factor - 1) / (most - threshold)
      w.stored, w.lead = most, 0
      local state = redis.call('GET', on.key)
      if not state or #state ~= HEAD + 32 or state:sub(1, 1) ~= on.letter then
        begin(0, 0)
        return true
      end
      local _, lock, last, former, burst, stored, lead = struct.unpack('<c1dddddd', state)
      local passed = begin(lock, last) == 0 and on.t - last or 0
      if former ~= most or burst ~= budget then
        stored, lead = stored * most / former, math.min(lead, budget)
        on.dirty = true
      end
      w.stored = math.min(most, stored + math.max(0, passed - lead) / cool)
      w.lead = math.max(0, lead - passed)
      return true
    end,

    wait = function(n)
      local price = cost(n)
      if price > w.budget + EASE then return math.ceil(math.max(0, w.lead - EASE)) end
      return math.ceil(math.max(0, w.lead + price - w.budget - EASE))
    end,

    free = function()
      if w.lead <= EASE then return on.limit end
      return affordable(on.limit, w.budget - w.lead)
    end,

    take = take,

    charge = function(n)
      local room = math.max(0, w.budget + math.max(w.budget, 60000000) - w.lead)
      if cost(n) <= room + EASE then return n, take(n) end
      n = affordable(n, room)
      w.lead, w.stored = w.lead + room, w.stored - math.min(n, w.stored)
      return n, 0
    end,

    giveback = function(n) w.lead = math.max(0, w.lead - n * w.stable) end,

    fresh = fresh,

    save = function()
      local state = struct.pack('<c1dddddd', on.letter, on.lock, on.t, w.most, w.budget, w.stored, w.lead)
      redis.call('SET', on.key, state, 'PX', ttl(fresh()))
    end,
  }
end
