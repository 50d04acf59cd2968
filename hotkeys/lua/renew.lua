-- Writes everything that does not change the version: current rates and new ends of our entries,
-- our suspects, the instances, and the heartbeat. Arguments: number of the entries' arguments,
-- number of the suspects' (-1 if they are unchanged), entries, suspects, the instances with their
-- ages in milliseconds.
local refused = fence()
if refused then return refused end
local run, n = version()
if went_back(run, n) then return {'back'} end
-- If the numbers of members and infos differ, some are foreign or were lost. The other keys are
-- checked once in a renewal, even if there is nothing to write.
local entries, told = tonumber(ARGV[FIRST]), tonumber(ARGV[FIRST + 1])
if told >= 0 then
  on('ZCARD', SUSPECTS)
  if mentions(failure(redis.pcall('XTRIM', EVENTS, 'MAXLEN', '~', events_cap)), 'WRONGTYPE') then discard(EVENTS) end
  untidy = on('ZCARD', HOT) ~= #on('HKEYS', INFO)
end
local first = FIRST + 2
local suspects = first + entries
local instances = suspects + math.max(0, told)
for i = first, suspects - 1, 3 do
  if not on('ZSCORE', HOT, ARGV[i]) then return {'gone'} end
end
write_on(first, suspects - 1)

-- The instances, scored by the time when any owner last heard them. Redis has GT since 6.2.
local life, max_instances, max_suspects, max_owners = 10000, 100000, 1000, 4000
on('ZREMRANGEBYSCORE', INSTANCES, '(' .. whole(now), '+inf') -- the clock was set back
for i = instances, #ARGV, 2 do
  local at = whole(now - tonumber(ARGV[i + 1]))
  local added = redis.pcall('ZADD', INSTANCES, 'GT', at, ARGV[i])
  if type(added) == 'table' then call('ZADD', INSTANCES, at, ARGV[i]) end
end
call('ZREMRANGEBYSCORE', INSTANCES, '-inf', whole(now - life))
call('ZREMRANGEBYRANK', INSTANCES, 0, -1 - max_instances)
call('PEXPIRE', INSTANCES, life)

-- Our suspects expire with the heartbeat. The set of all suspects is the union of the owners'
-- suspects, so that those of a dead owner disappear.
if told >= 0 then
  call('DEL', OURS)
  for i = suspects, instances - 1, 2 do call('ZADD', OURS, ARGV[i + 1], ARGV[i]) end
end
call('PEXPIRE', OURS, beat_ttl)
local parts = {}
for _, field in ipairs(on('HKEYS', OWNERS)) do
  if #parts < max_owners and #field <= 128 and not string.find(field, ':', 1, true) then parts[#parts + 1] = SUSPECTS .. ':' .. field end
end
local before = on('ZRANGE', SUSPECTS, 0, -1)
local n_parts = #parts
parts[n_parts + 1], parts[n_parts + 2] = 'AGGREGATE', 'MAX'
if failure(redis.pcall('ZUNIONSTORE', SUSPECTS, n_parts, unpack(parts))) then
  for i = 1, n_parts do on('ZCARD', parts[i]) end -- one of them is not a sorted set
  call('ZUNIONSTORE', SUSPECTS, n_parts, unpack(parts))
end
call('ZREMRANGEBYRANK', SUSPECTS, 0, -1 - max_suspects)
call('PEXPIRE', SUSPECTS, beat_ttl)
local after = call('ZRANGE', SUSPECTS, 0, -1)

-- Returns the digest of a set of members. It sorts their hashes, not the members: table.sort
-- compares by Redis's locale, and every locale has the same order of hexadecimal digits.
local function digest(members)
  if #members == 0 then return '' end
  local hashes = {}
  for i, member in ipairs(members) do hashes[i] = redis.sha1hex(member) end
  table.sort(hashes)
  return redis.sha1hex(table.concat(hashes))
end
local was, is = digest(before), digest(after)
local live = whole(call('ZCARD', INSTANCES))
call('SET', BEAT, '{"instances":' .. live .. ',"suspects":"' .. is .. '"}', 'PX', beat_ttl)

-- Returns JSON strings of the members that are not in others.
local function less(members, others)
  local there, quoted = {}, {}
  for _, member in ipairs(others) do there[member] = true end
  for _, member in ipairs(members) do
    if not there[member] then quoted[#quoted + 1] = cjson.encode(member) end
  end
  return quoted
end
local v = run .. ':' .. whole(n)
if was ~= is then
  local head = '{"version":"' .. v .. '","fleet":{"instances":' .. live
  local new, over = less(after, before), less(before, after)
  local change = head .. ',"was":"' .. was .. '","suspects":"' .. is .. '","new":[' .. table.concat(new, ',')
    .. '],"over":[' .. table.concat(over, ',') .. ']}}'
  if #change <= max_push then
    publish(change)
  else -- in parts, without digests; the poll finds the removed suspects
    local from, size = 1, 0
    for i = 1, #new + 1 do
      size = size + #(new[i] or '') + 1
      if i > from and (i > #new or #head + size + 16 > max_push) then
        publish(head .. ',"new":[' .. table.concat(new, ',', from, i - 1) .. ']}}')
        from, size = i, #(new[i] or '') + 1
      end
    end
  end
end
return {'ok', v}
