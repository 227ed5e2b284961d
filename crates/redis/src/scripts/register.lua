-- Writes down names of relations and numbers of slots, for whoever walks through the store later.
--
-- KEYS  relations slots
-- ARGV  #names names… slots…

local names = tonumber(ARGV[1])
for place = 2, names + 1 do redis.call('SADD', KEYS[1], ARGV[place]) end
for place = names + 2, #ARGV do redis.call('SETBIT', KEYS[2], ARGV[place], 1) end
-- Names that are known already are no news; but whoever waits for replicas must wait for them too, and from Redis 7.2 on
-- nobody waits who has written nothing.
redis.call('SADD', KEYS[1], '')
redis.call('SREM', KEYS[1], '')
return 1
