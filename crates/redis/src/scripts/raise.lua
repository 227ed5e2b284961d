-- Raises a number, and never lowers it.
--
-- KEYS  number
-- ARGV  value

local now = redis.call('GET', KEYS[1])
if not now or tonumber(now) < tonumber(ARGV[1]) then redis.call('SET', KEYS[1], ARGV[1]) end
return 1
