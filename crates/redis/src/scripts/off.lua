-- A total as its length and what is added to it, as of one moment.
--
-- KEYS  off shown [hidden]
-- ARGV  relation

local length = redis.call('ZCARD', KEYS[2])
if KEYS[3] then length = length + redis.call('ZCARD', KEYS[3]) end
return {length, redis.call('HGET', KEYS[1], ARGV[1]) or '0'}
