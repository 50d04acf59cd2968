-- Takes the owner under a new epoch. Without a lease a first claim (epoch 0) always
-- succeeds, a later one while the holder is silent, or Redis has lost what it
-- claimed. With one a claim succeeds when nobody else holds it: the lease is over, or
-- was let go of. A lease that lasts beyond any is of before the clock was set back. A
-- holder that claims again does not extend its lease by that: one whom no answer
-- reaches must lose it.
-- Own argument: 1 from one that stood by, which is told what it takes over, as is
-- one that lost its lease meanwhile.
local refused = foreign_schema()
if refused then return refused end
local theirs, by, until_ = ownership()
local alive_until = now + math.max(60000, silence)
local holds = by and by ~= holder and until_ > now and until_ <= alive_until
if lease > 0 then
  if holds then return taken(theirs, until_, by) end
  if by ~= holder or ARGV[FIRST] == '1' then return inventory(take(theirs, by == holder)) end
elseif epoch > 0 and theirs >= epoch and by and by ~= holder then
  -- A holder of a version that gives no sign of life of its own lives while anybody's
  -- heart beats.
  if holds or (until_ == 0 and on('GET', BEAT)) then return taken(theirs, until_, by) end
end
if lease == 0 and ARGV[FIRST] == '1' then return inventory(take(theirs, by == holder)) end
local next_epoch = take(theirs, by == holder)
local run, n = version()
return {'ok', run and (run .. ':' .. whole(n)) or '', whole(next_epoch)}
