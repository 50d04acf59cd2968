-- Writes an owner's fields. It changes nothing for a writer that another one has replaced, or that
-- does not know all forgotten keys.
-- KEYS: owners, forgotten, panes, and the chunks of each level
-- ARGV: owner, epoch, version of the forgotten keys, state, milliseconds to keep, number of fields to
--   set, of each the index in KEYS, field and value; then of each field to delete the index and field
local owners, forgotten = KEYS[1], KEYS[2]
if tonumber(redis.call('HGET', owners, ARGV[1] .. ' epoch') or 0) ~= tonumber(ARGV[2]) then
  return 'fenced'
end
if (redis.call('HGET', forgotten, 'version') or '0') ~= ARGV[3] then
  return 'forget'
end
local at = 7
for _ = 1, tonumber(ARGV[6]) do
  redis.call('HSET', KEYS[tonumber(ARGV[at])], ARGV[at + 1], ARGV[at + 2])
  at = at + 3
end
while at < #ARGV do
  redis.call('HDEL', KEYS[tonumber(ARGV[at])], ARGV[at + 1])
  at = at + 2
end
redis.call('HSET', owners, ARGV[1], ARGV[4])
redis.call('PEXPIRE', owners, ARGV[5])
for i = 3, #KEYS do
  redis.call('PEXPIRE', KEYS[i], ARGV[5])
end
return 'ok'
