-- Saves a snapshot. KEYS: owners, the snapshot. ARGV: the owner, the holder, the snapshot, the
-- time in milliseconds that it is kept. Returns 0 if another process holds the owner.
if redis.call('HGET', KEYS[1], ARGV[1] .. ':holder') ~= ARGV[2] then return 0 end
redis.call('SET', KEYS[2], ARGV[3], 'PX', ARGV[4])
return 1
