-- Writes a key, which shows whether the server executes writes.
redis.call('SET', KEYS[1], '1', 'PX', 10000)
return 1
