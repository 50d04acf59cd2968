-- Replaces a field, if it still has the value that was read.
-- KEYS: the hash; ARGV: field, value that was read, new value
if redis.call('HGET', KEYS[1], ARGV[1]) ~= ARGV[2] then
  return 0
end
redis.call('HSET', KEYS[1], ARGV[1], ARGV[3])
return 1
