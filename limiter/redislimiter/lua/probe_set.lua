-- Writes to a sorted set, which then is as it was, and so tells whether the server does.
redis.call('ZADD', KEYS[1], 0, 'probe')
redis.call('ZREM', KEYS[1], 'probe')
return 1
