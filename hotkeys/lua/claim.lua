-- Takes the owner under a new epoch. Without a lease a first claim (epoch 0) always
-- succeeds, a later one only while nobody else took the owner. With one a claim
-- succeeds when nobody else holds it: the lease is over, or was let go of. A lease
-- that lasts beyond any is of before the clock was set back. A holder that claims
-- again does not extend its lease by that: one whom no answer reaches must lose it.
-- Own argument: 1 from one that stood by, which is told what it takes over, as is
-- one that lost it meanwhile.
local max_lease = 60000
local refused = foreign_schema()
if refused then return refused end
local theirs, by, until_ = ownership()
if lease > 0 then
  if by and by ~= holder and until_ > now and until_ <= now + max_lease then return taken(theirs, until_) end
  if by ~= holder or ARGV[FIRST] == '1' then return inventory(take(theirs, by == holder)) end
elseif epoch > 0 and theirs >= epoch and by ~= holder then
  return taken(theirs, until_)
end
local next_epoch = take(theirs, by == holder)
local run, n = version()
return {'ok', run and (run .. ':' .. whole(n)) or '', whole(next_epoch)}
