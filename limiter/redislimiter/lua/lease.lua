-- Leases of permits. Instances hold permits of a bucket, spend them without a call, and settle
-- their accounts here from time to time. What is free in the bucket and what instances hold is
-- together at most the burst: held permits count as missing, and what they have been is not earned
-- again before they are spent, returned or expired. So the requests that all instances together
-- admit in any window w are at most burst + rate * w, however late or seldom they settle.
--
-- KEYS holds for each ask: the key, the key with the algorithm's letter, and the key of its
-- leases. An argument packs what run.lua's does, then from LEASE on: incarnation, number of the
-- ask, permits spent in all, permits held, demand in permits per second, permits wanted, period,
-- time for which permits are leased, time for which nothing was answered or 0, whether more may
-- be spent than was held, free permits to keep for others, and the name of the instance.
--
-- The reply packs the time, then for each key the outcome, permits granted, whether what is held
-- is still valid, the time to wait before asking again, the incarnation, the permits that are
-- free, the number of instances, and the time until the bucket is full.
--
-- The leases of a key are a hash. Field `s` has the incarnation, the time of the last settlement,
-- and for each time at which leases end that time, their permits, and the demand and number of
-- their instances. So what ends is found without a look at each instance. A field for each
-- instance has the number of its last ask, its permits spent and held, when these end, its
-- demand, and when it was last granted what it wanted.
local LEASE = 114 -- 73 of the head and 40 of the bucket's own numbers
local SETTLED = 1
local STALE = 2
local FAILED = 4
local SLOT = 20000    -- leases that end within this time expire together
local SECOND = 1000000
local KEPT = 60000    -- ms, for which leases are kept after the last settlement
local MANY = 64       -- fields of instances that may be left without a look for ended ones

-- Reads the leases of a key that have not ended. Returns the incarnation, or 0 without any, the
-- time of the last settlement, and the leases by their end.
local function read_leases(text, t, longest)
  local ends = {}
  if not text or #text < 16 or (#text - 16) % 32 > 0 then return 0, 0, ends end
  local incarnation, settled = struct.unpack('<dd', text)
  for i = 17, #text, 32 do
    local till, held, demand, count = struct.unpack('<dddd', text, i)
    if till > t + longest then till = t + longest end -- another clock
    if till > t then
      local same = ends[till]
      if same then held, demand, count = held + same[1], demand + same[2], count + same[3] end
      ends[till] = {held, demand, count}
    end
  end
  return incarnation, settled, ends
end

local function pack_leases(incarnation, t, ends)
  local packed = {struct.pack('<dd', incarnation, t)}
  for till, of in pairs(ends) do
    if of[3] > 0 then packed[#packed + 1] = struct.pack('<dddd', till, of[1], of[2], of[3]) end
  end
  return table.concat(packed)
end

-- Deletes the fields of instances whose leases have ended a second ago or more.
local function sweep(leases, t)
  local all = redis.call('HGETALL', leases)
  for i = 1, #all, 2 do
    if all[i] ~= 's' and (#all[i + 1] ~= 48 or struct.unpack('<d', all[i + 1], 25) < t - SECOND) then
      redis.call('HDEL', leases, all[i])
    end
  end
end

local function settle(k)
  local asked, leases = ARGV[k + 1], KEYS[at + 2]
  on.letter, on.kind, on.now = asked:sub(1, 1), 0, now
  on.limit = struct.unpack('<d', asked, 58)
  on.base, on.own = KEYS[at], KEYS[at + 1]
  local incarnation, number, spent, hold, demand, want, period, lasts, silent, owing, keep = struct.unpack('<ddddddddddd', asked, LEASE)
  local id = 'i' .. asked:sub(LEASE + 88)
  local a = algorithms[on.letter]
  a.open(asked)
  local b, t = a.bucket, on.t
  local cost, full = b.cost, b.full
  local shared = redis.call('HMGET', leases, 's', id)
  local own, settled, ends = read_leases(shared[1], t, 2 * lasts)
  if own == 0 then
    own = t
    if b.held > 0 then ends[b.held_until] = {b.held, 0, 0} end -- by whom is not known any more
    -- The state is lost, but somebody has spent permits of it: it begins empty.
    if incarnation ~= 0 then b.owed = math.max(b.owed, full) end
  elseif silent > 0 and t - settled > silent / 2 then
    -- Nobody could settle, and what all have admitted meanwhile is not known before all have said
    -- it. The first one that comes back empties the bucket.
    b.owed = math.max(b.owed, full)
  end
  local had, last, valid = 0, t - period, 1
  local record = shared[2]
  if record and #record == 48 and struct.unpack('<d', record) > 0 then
    local before, before_spent, held, till, wanted, granted = struct.unpack('<dddddd', record)
    if number <= before then return STALE, 0, 0, 0, own, 0, 0, 0 end
    local live = till > t and ends[till]
    had, last = live and held or 0, math.min(granted, t)
    if live then live[1], live[2], live[3] = live[1] - held, live[2] - wanted, live[3] - 1 end
    if not live or incarnation ~= own then hold, valid = 0, 0 end
    local more = spent - before_spent
    -- What was held and is neither spent nor kept goes back. What ended stays taken: it may have
    -- been spent. What was spent beyond that was admitted while Redis was away, or before the cost
    -- was known.
    local left = had - more - hold
    if not live then left = math.min(0, held - more) end
    if left >= 0 then
      b.owed = math.max(0, b.owed - left * cost)
    else
      b.owed = math.max(b.owed, math.min(b.owed - left * cost, owing == 1 and b.most or full))
    end
  elseif incarnation == 0 then -- an instance that comes, or comes back
    hold, valid = 0, 0
    b.owed = math.max(b.owed, math.min(b.owed + spent * cost, owing == 1 and b.most or full))
  elseif incarnation ~= own then
    hold, valid = 0, 0
  else -- its last settlement was lost in a failover
    b.owed = math.max(b.owed, math.min(b.owed + hold * cost, full))
  end
  local others, all, count = 0, demand, 1
  for _, of in pairs(ends) do others, all, count = others + of[1], all + of[2], count + of[3] end
  b.owed = math.max(b.owed, math.min(others + hold, on.limit) * cost)
  local free = math.max(0, (full - b.owed) / cost - keep)
  local rate = b.earn / cost * SECOND -- permits in a second
  local due = rate * period / SECOND -- permits earned in a period
  -- Its part of what is earned and of what is free, since it was granted something. Beyond that
  -- anybody gets what more than a period brings, and half of all while demand is below the rate.
  local share = all > 0 and math.max(demand / all, 0.001) or 1
  local each = SECOND / (rate * share) -- time in which its part earns a permit
  local since = math.min(t - last, math.max(SECOND, each))
  local greed = all < rate and 3 or 1.5
  local part = math.max(free * math.min(1, greed * share * since / period), math.min(free, since / each + 0.001))
  part = math.max(part, free - due)
  if all < 0.9 * rate then part = math.max(part, free / 2) end
  local grant, wait = math.floor(math.min(want, part)), 0
  if grant >= want then
    last = t
  elseif grant > 0 then
    last = t - since * (1 - grant / part) -- a fraction of a permit is kept
  end
  if grant < want and free - grant - due < 1 then
    wait = math.min(SECOND, math.max(period, math.ceil(last + each - t)))
  end
  b.owed = b.owed + grant * cost
  hold = hold + grant
  if hold > 0 or demand > 0 or want > 0 then
    local till = math.ceil((t + lasts) / SLOT) * SLOT
    local of = ends[till] or {0, 0, 0}
    ends[till] = {of[1] + hold, of[2] + demand, of[3] + 1}
    redis.call('HSET', leases, id, struct.pack('<dddddd', number, spent, hold, till, demand, last))
  elseif record then
    redis.call('HDEL', leases, id)
  end
  b.held, b.held_until = 0, 0
  for till, of in pairs(ends) do
    if of[1] > 0 then b.held, b.held_until = b.held + of[1], math.max(b.held_until, till) end
  end
  redis.call('HSET', leases, 's', pack_leases(own, t, ends))
  redis.call('PEXPIRE', leases, KEPT)
  if redis.call('HLEN', leases) > 2 * count + MANY then sweep(leases, t) end
  a.save()
  return SETTLED, grant, valid, wait, own, math.floor(math.max(0, (full - b.owed) / cost - keep)), count, seen(a.fresh())
end

local healed, texts = 0, nil
for k = 1, #ARGV - 1 do
  local results, text
  for try = 1, 2 do
    results = {pcall(settle, k)}
    local err = results[2]
    text = not results[1] and (type(err) == 'table' and err.err or tostring(err)) or nil
    if try == 2 or not text or not text:find('WRONGTYPE', 1, true) then break end
    redis.call('DEL', KEYS[at], KEYS[at + 1], KEYS[at + 2])
    healed = healed + 1
  end
  if text then
    texts = texts or {}
    texts[k] = text
    answer[k] = struct.pack('<dddddddd', FAILED, 0, 0, 0, 0, 0, 0, 0)
  else
    answer[k] = struct.pack('<dddddddd', unpack(results, 2))
  end
  at = at + 3
end
local reply = struct.pack('<d', now) .. table.concat(answer)
if healed == 0 and not texts then return reply end
local list = {reply}
for k = 1, #ARGV - 1 do
  if texts and texts[k] then list[#list + 1] = texts[k] end
end
return {healed, list}
