-- Says that topics are watched for a while, and forgets those that nobody watches any more. Answers how many of them
-- were not known to be.
--
-- KEYS  watched
-- ARGV  milliseconds topics…

local now = redis.call('TIME')
now = now[1] * 1000 + math.floor(now[2] / 1000)
redis.call('ZREMRANGEBYSCORE', KEYS[1], '-inf', now)
local new = 0
for place = 2, #ARGV do new = new + redis.call('ZADD', KEYS[1], now + ARGV[1], ARGV[place]) end
return new
