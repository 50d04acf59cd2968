-- Writes, and so tells whether the server does.
redis.call('SET', KEYS[1], '1', 'PX', 10000)
return 1
