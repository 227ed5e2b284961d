-- Takes a piece of work, goes on holding it, or gives it back.
--
-- KEYS  lease
-- ARGV  server milliseconds     0 gives it back. Answers whether the server has it.

local holder = redis.call('GET', KEYS[1])
if holder and holder ~= ARGV[1] then return 0 end
if ARGV[2] == '0' then
  redis.call('DEL', KEYS[1])
  return 0
end
redis.call('SET', KEYS[1], ARGV[1], 'PX', ARGV[2])
return 1
