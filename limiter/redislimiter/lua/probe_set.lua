-- Writes to a sorted set without changing it, which shows whether the server executes writes.
redis.call('ZADD', KEYS[1], 0, 'probe')
redis.call('ZREM', KEYS[1], 'probe')
return 1
