-- Writes something, for whoever waits until it is safe.
--
-- KEYS  fence

redis.call('SET', KEYS[1], 1, 'EX', 60)
return 1
