-- Takes the owner under a new epoch. Without a lease, a first claim (epoch 0) always succeeds. A
-- later one succeeds if the holder has been silent or Redis has lost its claim. With a lease, a
-- claim succeeds if no other process holds the owner, because the lease has expired or was
-- released. A lease that is longer than the longest possible one dates from before the clock was
-- set back. A holder that claims again does not extend its lease: a holder that no answer reaches
-- must lose it.
--
-- Argument: 1 from a standby. The answer then has the entries that it takes over. It also has
-- them for a process that had lost its lease.
local refused = foreign_schema()
if refused then return refused end
local theirs, by, until_ = ownership()
local alive_until = now + math.max(60000, silence)
local holds = by and by ~= holder and until_ > now and until_ <= alive_until
if lease > 0 then
  if holds then return taken(theirs, until_, by) end
  if by ~= holder or ARGV[FIRST] == '1' then return inventory(take(theirs, by == holder)) end
elseif epoch > 0 and theirs >= epoch and by and by ~= holder then
  -- A holder of an older version, which does not write its own "until", counts as alive
  -- while there is any heartbeat.
  if holds or (until_ == 0 and on('GET', BEAT)) then return taken(theirs, until_, by) end
end
if lease == 0 and ARGV[FIRST] == '1' then return inventory(take(theirs, by == holder)) end
local next_epoch = take(theirs, by == holder)
local run, n = version()
return {'ok', run and (run .. ':' .. whole(n)) or '', whole(next_epoch)}
