-- Takes the owner under a new epoch. A first claim (epoch 0) always succeeds;
-- a later one only while nobody else took the owner.
local refused = foreign_schema()
if refused then return refused end
local theirs, by = ownership()
if epoch > 0 and theirs >= epoch and by ~= holder then return {'fenced', whole(theirs)} end
local next_epoch = redis.call('HINCRBY', OWNERS, owner, math.max(theirs, epoch) + 1 - theirs)
redis.call('HSET', OWNERS, owner .. ':holder', holder)
local run, n = version()
return {'ok', run and (run .. ':' .. whole(n)) or '', whole(next_epoch)}
