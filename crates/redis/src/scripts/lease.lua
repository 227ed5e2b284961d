-- Takes a piece of work, goes on holding it, or gives it back.
--
-- KEYS  lease
-- ARGV  server milliseconds     0 gives it back. Answers whether the server has it.
--
-- What is kept is `holder since milliseconds`. It has no time to live: that would be a moment of this node's clock, and if
-- another node takes over, or the clock is put right, nobody would get the work of a dead server until it is reached. A
-- moment that is ahead was by such a clock; who holds the work says so again soon.

local now = redis.call('TIME')
now = now[1] * 1000 + math.floor(now[2] / 1000)
local holder, since, held_for = string.match(redis.call('GET', KEYS[1]) or '', '^(%S+) (%d+) (%d+)$')
if holder and holder ~= ARGV[1] and math.abs(now - since) < tonumber(held_for) then return 0 end
if ARGV[2] == '0' then
  redis.call('DEL', KEYS[1])
  return 0
end
redis.call('SET', KEYS[1], string.format('%s %.0f %s', ARGV[1], now, ARGV[2]))
return 1
