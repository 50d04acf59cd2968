-- Algorithms with windows. Permits are counted in slots of time: an instant of a sliding log,
-- a block of sliding blocks, a fixed window. A slot with a reservation lies in the future, and
-- counts at once.
--
-- The head of the state is followed by these numbers, the frames, and a record for each slot in
-- order of time: its begin, and the count of permits up to its end. So the content of a window is
-- found by bisection, and a call reads or writes only a few records, however many there are. Only
-- a return, or a take ahead of reservations, rewrites the later records.
do
  local w = {
    first = 0, last = 0, -- offsets of the oldest record, and of the end of the newest
    base = 0, total = 0, -- permits counted before the first record, and in all
    newest = 0,          -- begin of the newest slot; 0 without one
    kept = 0,            -- the end for which the key's expiry was set
    mine = 0, gone = 0,  -- offset of the caller's oldest record, and permits before it
    span = 0, length = 0, edges = nil,
    text = '',           -- the beginning of the state, as it was read
  }
  local SIZE = 65 -- HEAD and six numbers
  local RECORD = 16
  local MOST_OWED = 1099511627776
  local MOST_AHEAD = 65536
  local FEW = 64
  local MANY = 8192

  local function record(at)
    if at + RECORD <= #w.text then return struct.unpack('<dd', w.text, at + 1) end
    return struct.unpack('<dd', redis.call('GETRANGE', on.key, at, at + RECORD - 1))
  end

  -- Returns the count before a record.
  local function before(at)
    if at == w.first then return w.base end
    local _, count = record(at - RECORD)
    return count
  end

  -- Returns the offset of the first record that begins after `after` and counts at least `least`;
  -- nil matches any.
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

  -- Rewrites the records from an offset on: adds n permits, moves them by an offset, and maps
  -- their begins by back.
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

  -- Returns the caller's window, or slot, at a time.
  local function window(at)
    local own = frames.own
    if w.edges then
      for k = #w.edges, 1, -1 do
        local from, ends = w.edges[k], w.edges[k + 1] or at + w.span
        if from <= at then return ends == own[TILL] and own[FROM] or from, ends end
      end
    end
    if w.length >= 1 then
      local ends = at + w.span
      return at, on.t < own[TILL] and math.min(ends + own[FROM], math.max(ends, own[TILL])) or ends
    end
    if at < own[TILL] then return own[FROM], own[TILL] end
    at = at - (at - own[TILL]) % w.span
    return at, at + w.span
  end

  local function leaves(begins)
    local _, ends = window(begins)
    return ends
  end

  -- Counts n permits in the slot with that begin.
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

  -- Finds the records that the caller counts.
  local function mine()
    w.mine = find(frames.past(frames.own, w.newest))
    w.gone = before(w.mine)
  end

  -- Merges past slots that are closer to each other than a 64th of their age into the later one,
  -- so that there are at most MANY, whatever the frames.
  local function thin()
    local past = find(on.t)
    if past - w.first <= MANY * RECORD then return end
    local old, new, last, from = redis.call('GETRANGE', on.key, w.first, past - 1), {}, -1, w.first
    for at = 1, #old, RECORD do
      local begins, count = struct.unpack('<dd', old, at)
      local _, exponent = math.frexp(math.max(1, on.t - begins))
      local cell = 2 ^ (exponent - 8)
      if #new == 0 or math.floor(begins / cell) ~= math.floor(last / cell) then new[#new + 1] = '' end
      new[#new], last = struct.pack('<dd', begins, count), begins
    end
    w.first = past - #new * RECORD
    redis.call('SETRANGE', on.key, w.first, table.concat(new))
    w.text = ''
  end

  -- Moves the slots of another clock, which is ahead by `by`.
  local function set_back(by)
    w.kept = 0
    if w.edges then
      local n = w.total - w.base
      w.first, w.base, w.total, w.newest = w.last, 0, 0, 0
      if n > 0 then put(math.max(frames.slot(0), (window(on.t))), n) end
      return
    end
    local function back(begins)
      local to = begins - by
      if w.length > 1 then
        to = to + by % w.length
        if begins <= on.t + by then to = math.min(to, on.t - on.t % w.length) end
      end
      return math.max(0, to)
    end
    rewrite(w.first, 0, 0, back)
    w.newest = back(w.newest)
  end

  -- Sets the window of a new frame as far as the counts of others show it, too long rather than
  -- too short. late and till are the results of frames.enter.
  local function enter(own, late, till)
    if w.length >= 1 then
      if late > 0 then own[FROM], own[TILL] = late, on.t + w.span + late end
      return
    end
    local at = find(on.t - w.span - late)
    local begins = at < w.last and record(at) or on.t
    own[FROM], own[TILL] = begins, begins + w.span
    if at == w.last then
      own[TILL] = on.t
    elseif begins > on.t then
      own[FROM] = on.t - (on.t - begins) % w.span
      own[TILL] = own[FROM] + w.span
    elseif own[TILL] <= on.t then
      own[TILL] = math.min(till, on.t + w.span)
    end
  end

  -- Sets the period of a calendar. For a new frame, a slot that began earlier counts, since
  -- its takes may be from this period.
  local function period(own, late)
    local from, ends = window(on.t)
    if late then
      local at = find(from - late)
      if at < w.last then from = math.min(from, (record(at))) end
    elseif own[TILL] > on.t then
      from = math.min(from, own[FROM])
    end
    own[FROM], own[TILL] = from, ends
  end

  local function take(n, wait)
    frames.keep(on.t + wait)
    local begins = wait > 0 and on.t + wait or frames.slot(w.newest)
    put(begins, n)
    if w.last - w.first > FEW * RECORD then
      -- Forgets past slots that cannot matter: the permits after them reach any limit, so there
      -- is no room until those have left anyway.
      local most = 0
      for i = 1, #frames.list do most = math.max(most, frames.list[i][LIMIT]) end
      if w.total - w.base > most then
        forget(math.min(find(nil, before(find(on.t)) - most + 1), w.last - FEW * RECORD))
      end
      if w.length ~= 1 and w.last - w.first > MANY * RECORD then thin() end
      mine()
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
        w.edges[n + 1] = nil -- the offset that struct.unpack adds
      end
      local lock, last, state = 0, 0, read()
      w.text, w.first, w.last, w.base, w.total, w.newest, w.kept = '', SIZE, SIZE, 0, 0, 0, 0
      if #state >= SIZE then
        local _
        _, lock, last, w.first, w.last, w.base, w.total, w.newest, w.kept = struct.unpack('<c1dddddddd', state)
        w.text = state
      end
      -- A state without records has no time.
      local some = w.first < w.last
      local behind = begin(lock, (some or lock > 0) and last or 0)
      if n > 0 and (on.t < w.edges[1] or on.t >= w.edges[n]) then return false end
      frames.read(some and state or '', SIZE, behind)
      local late, till = frames.enter(w.span, w.length)
      local own = frames.own
      if some and behind > 0 then set_back(behind) end
      if w.edges then period(own, late) elseif late and some then enter(own, late, till) end
      w.mine, w.gone = w.first, w.base
      if some then
        local past, list = frames.past(own, w.newest), frames.list
        local oldest = past
        for i = 1, #list do
          if list[i] ~= own then oldest = math.min(oldest, frames.past(list[i], w.newest)) end
        end
        forget(find(oldest))
        if oldest < past then mine() else w.mine, w.gone = w.first, w.base end
      end
      -- A new frame is recorded, so that its window is set once. Later it is recorded now and
      -- then, so that the others keep the slots that it counts.
      local list = frames.list
      if w.first < w.last and on.kind <= 3 and (#list > 1 or #list == 1 and list[1] ~= own) and
        (late or on.t - own[ASKED] > w.span / 4) then
        frames.keep(math.max(on.t, w.newest))
        on.dirty = true
      end
      return true
    end,

    free = function()
      if w.length < 1 and w.newest > on.t then return 0 end
      return on.limit - w.total + w.gone
    end,

    wait = function(n)
      if w.length < 1 then
        if w.newest <= on.t then
          if w.total - w.gone + n <= on.limit then return 0 end
          return leaves(on.t) - on.t
        end
        local from, ends = window(w.newest)
        if w.total - before(find(from - 1)) + n <= on.limit then return w.newest - on.t end
        return ends - on.t
      end
      local over = w.total - on.limit + n
      if over <= w.gone then return 0 end
      return leaves((record(find(nil, over)))) - on.t
    end,

    -- Returns the time until the first future slot has begun, if there are as many as allowed.
    full = function()
      if w.last - w.first < MOST_AHEAD * RECORD then return nil end
      local at = find(on.t)
      return w.last - at >= MOST_AHEAD * RECORD and seen(record(at) - on.t)
    end,

    take = take,

    charge = function(n)
      n = math.min(n, on.limit + MOST_OWED - w.total + w.gone)
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
        rewrite(at, -n, 0) -- an open window stays open
      end
      mine()
    end,

    fresh = function() return w.total > w.gone and leaves(w.newest) - on.t or 0 end,

    save = function()
      if w.first == w.last and on.lock <= on.t then return redis.call('DEL', on.key) end
      if w.total > WHOLE / 2 then
        rewrite(w.first, -w.base, 0)
        w.base, w.total = 0, w.total - w.base
      end
      local packed = frames.pack()
      local ends, start, records = on.t, SIZE + #packed, nil
      if w.first < w.last then ends = math.max(frames.ends(w.newest), leaves(w.newest)) end
      local dead = w.first - start
      if dead < 0 or dead >= math.max(w.last - w.first, 1024) then -- at least half of it is unused
        records = w.first < w.last and redis.call('GETRANGE', on.key, w.first, w.last - 1) or ''
        w.first, w.last = start, w.last - dead
      end
      ends = math.max(ends, w.kept)
      local till = math.max(ends, on.lock)
      local state = struct.pack('<c1dddddddd', on.letter, on.lock, on.t, w.first, w.last, w.base, w.total, w.newest, till)
      if records then
        redis.call('SET', on.key, state .. packed .. records, 'PX', ttl(ends - on.t))
        return
      end
      redis.call('SETRANGE', on.key, 0, state .. packed)
      if till ~= w.kept then redis.call('PEXPIRE', on.key, ttl(ends - on.t)) end
    end,
  }
  algorithms.f, algorithms.k = algorithms.s, algorithms.s
end
