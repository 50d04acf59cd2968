-- Algorithms with windows. Permits are counted in slots of time: each instant of a
-- sliding log, a block of sliding blocks, a window of fixed windows. A slot that is
-- reserved lies in the future, and counts at once.
--
-- After the head of the state come these numbers, and then a record for each slot, in
-- order of time: when it begins, and how many permits were counted up to its end. So
-- what is in the window, and what has left it, is found by bisection, and no call reads
-- or writes more than a few records, however many there are, but for what is given
-- back, or taken ahead of reservations: then the records behind it are written anew.
do
  local w = {
    first = 0, last = 0, -- offsets of the oldest record, and of the end of the newest
    base = 0, total = 0, -- permits counted before the first record, and in all
    newest = 0,          -- when the newest slot begins; 0: there is none
    kept = 0,            -- the end for which the key's expiry was set
    span = 0, length = 0, edges = nil,
    text = '',           -- the beginning of the state, as it was read
  }
  local SIZE, RECORD = HEAD + 48, 16
  local MOST_OWED, MOST_AHEAD, FEW = 1099511627776, 65536, 64

  local function record(at)
    if at + RECORD <= #w.text then return struct.unpack('<dd', w.text, at + 1) end
    return struct.unpack('<dd', redis.call('GETRANGE', on.key, at, at + RECORD - 1))
  end

  -- The count before a record.
  local function before(at)
    if at == w.first then return w.base end
    local _, count = record(at - RECORD)
    return count
  end

  -- The offset of the first record that begins after some time, or counts at least so
  -- much; nil: whatever.
  local function find(after, least)
    local low, high = w.first, w.last
    local middle = low
    while low < high do
      local begins, count = record(middle)
      if (not after or begins > after) and (not least or count >= least) then high = middle else low = middle + RECORD end
      middle = low + math.floor((high - low) / RECORD / 2) * RECORD
    end
    return low
  end

  -- Writes the records from there on anew, n permits up, by an offset; back by a time.
  local function rewrite(from, n, by, back)
    if from < w.last then
      local old, new = redis.call('GETRANGE', on.key, from, w.last - 1), {}
      for at = 1, #old, RECORD do
        local begins, count = struct.unpack('<dd', old, at)
        new[#new + 1] = struct.pack('<dd', back and back(begins) or begins, count + n)
      end
      redis.call('SETRANGE', on.key, from + by, table.concat(new))
    end
    w.last, w.text = w.last + by, ''
  end

  local function leaves(begins)
    for _, edge in ipairs(w.edges or {}) do
      if edge > begins then return edge end
    end
    return begins + w.span
  end

  local function slot(at)
    if w.edges then
      for k = #w.edges, 1, -1 do
        if w.edges[k] <= at then return w.edges[k] end
      end
    elseif w.length > 0 then
      return at - at % w.length
    elseif w.first < w.last then
      return at - (at - w.newest) % w.span -- windows follow each other back to back
    end
    return at
  end

  -- Counts n permits in the slot that begins then.
  local function put(begins, n)
    local at = w.newest > begins and find(begins) or w.last
    w.total = w.total + n
    if at > w.first and record(at - RECORD) == begins then return rewrite(at - RECORD, n, 0) end
    local count = before(at) + n
    rewrite(at, n, RECORD)
    redis.call('SETRANGE', on.key, at, struct.pack('<dd', begins, count))
    w.newest = math.max(w.newest, begins)
  end

  local function forget(at)
    if at > w.first then w.base, w.first = before(at), at end
    if w.first == w.last then w.base, w.total, w.newest = 0, 0, 0 end
  end

  -- The slots of another clock, which is by so much behind.
  local function set_back(by)
    if w.edges then
      local n = w.total - w.base
      w.first, w.base, w.total, w.newest = w.last, 0, 0, 0
      if n > 0 then put(slot(on.t), n) end
      return
    end
    local function back(begins)
      local to = begins - by
      if w.length > 1 then
        to = to + by % w.length
        if begins <= on.t + by then to = math.min(to, slot(on.t)) end
      end
      return math.max(0, to)
    end
    rewrite(w.first, 0, 0, back)
    w.newest = back(w.newest)
  end

  local function take(n, wait)
    local begins = slot(on.t + wait)
    put(begins, n)
    if w.length > 0 and w.total - w.base > on.limit and w.last - w.first > FEW * RECORD then
      -- Slots are forgotten that are past and cannot matter: the permits of those that
      -- follow make up the limit, and until they have left there is no room anyway.
      local past = before(find(on.t))
      forget(math.min(find(nil, past - on.limit + 1), w.last - FEW * RECORD))
    end
    return begins
  end

  algorithms.s = {
    open = function(asked)
      local n
      w.span, w.length, n = struct.unpack('<ddd', asked, OWN)
      w.edges = nil
      if n > 0 then
        w.edges = {struct.unpack('<' .. string.rep('d', n), asked, OWN + 24)}
        w.edges[n + 1] = nil -- where it ended
      end
      local lock, last, behind, state = 0, 0, 0, redis.call('GETRANGE', on.key, 0, 319)
      w.text, w.first, w.last, w.base, w.total, w.newest, w.kept = '', SIZE, SIZE, 0, 0, 0, 0
      if #state >= SIZE and state:sub(1, 1) == on.letter then
        local _
        _, lock, last, w.first, w.last, w.base, w.total, w.newest, w.kept = struct.unpack('<c1dddddddd', state)
        w.text = state
      end
      -- A state that remembers nothing knows no time.
      behind = begin(lock, (w.first < w.last or lock > 0) and last or 0)
      if n > 0 and (on.t < w.edges[1] or on.t >= w.edges[n]) then return false end
      if w.first < w.last then
        if behind > 0 then set_back(behind) end
        forget(find(w.edges and slot(on.t) - 1 or on.t - w.span))
      end
      return true
    end,

    free = function()
      if w.length == 0 and w.newest > on.t then return 0 end
      return on.limit - w.total + w.base
    end,

    wait = function(n)
      if w.first == w.last then return 0 end
      if w.length == 0 then
        if w.total - before(w.last - RECORD) + n <= on.limit then return math.max(0, w.newest - on.t) end
        return leaves(w.newest) - on.t
      end
      local over = w.total - on.limit + n
      if over <= w.base then return 0 end
      return record(find(nil, over)) + w.span - on.t
    end,

    -- The time until the first of the slots to come has begun, if they are as many as may be.
    full = function()
      if w.last - w.first < MOST_AHEAD * RECORD then return nil end
      local at = find(on.t)
      return w.last - at >= MOST_AHEAD * RECORD and seen(record(at) - on.t)
    end,

    take = take,

    charge = function(n)
      n = math.min(n, on.limit + MOST_OWED - w.total + w.base)
      if n <= 0 then return 0, 0 end
      return n, take(n, 0)
    end,

    giveback = function(n, mark)
      local at = find(mark - 1)
      if at == w.last then return end
      local begins, count = record(at)
      if begins ~= mark then return end
      local own = count - before(at)
      n = math.min(n, own)
      w.total = w.total - n
      if n == own and (w.length > 0 or begins > on.t) then
        rewrite(at + RECORD, -n, -RECORD)
        w.newest = w.first < w.last and record(w.last - RECORD) or 0
      else
        rewrite(at, -n, 0) -- a window that is open stays so
      end
    end,

    fresh = function() return w.total > w.base and leaves(w.newest) - on.t or 0 end,

    save = function()
      if w.first == w.last and on.lock <= on.t then return redis.call('DEL', on.key) end
      if w.total > 4503599627370496 then -- 2^52
        rewrite(w.first, -w.base, 0)
        w.base, w.total = 0, w.total - w.base
      end
      local ends, dead, records = w.first < w.last and leaves(w.newest) or on.t, w.first - SIZE, nil
      if dead >= math.max(w.last - w.first, 1024) then -- as much is of no use as is of use
        records = w.first < w.last and redis.call('GETRANGE', on.key, w.first, w.last - 1) or ''
        w.first, w.last = SIZE, w.last - dead
      end
      local till = math.max(ends, on.lock)
      local state = struct.pack('<c1dddddddd', on.letter, on.lock, on.t, w.first, w.last, w.base, w.total, w.newest, till)
      if records then
        redis.call('SET', on.key, state .. records, 'PX', ttl(ends - on.t))
        return
      end
      redis.call('SETRANGE', on.key, 0, state)
      if till ~= w.kept then redis.call('PEXPIRE', on.key, ttl(ends - on.t)) end
    end,
  }
  algorithms.f, algorithms.k = algorithms.s, algorithms.s
end
