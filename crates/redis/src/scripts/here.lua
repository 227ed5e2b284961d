-- Says that a server is there and takes part in what is due, and forgets those that have been silent for too long. Answers how
-- many come before it by name, and how many there are.
--
-- KEYS  servers
-- ARGV  server milliseconds
--
-- A moment that is ahead was by the clock of another node; who is there says so again soon.

local now = redis.call('TIME')
now = now[1] * 1000 + math.floor(now[2] / 1000)
redis.call('ZADD', KEYS[1], now, ARGV[1])
redis.call('ZREMRANGEBYSCORE', KEYS[1], '-inf', now - ARGV[2])
redis.call('ZREMRANGEBYSCORE', KEYS[1], now + ARGV[2], '+inf')
local servers, rank = redis.call('ZRANGE', KEYS[1], 0, -1), 0
for _, server in ipairs(servers) do
  if server < ARGV[1] then rank = rank + 1 end
end
return {rank, #servers}
