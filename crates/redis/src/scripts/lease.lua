-- Takes pieces of work, goes on holding them, or gives them back.
--
-- KEYS  leases…
-- ARGV  server milliseconds most     0 milliseconds gives them back. Takes the first ones that no other server has, so many
--                                    at most. Answers for each whether the server has it.
--
-- What is kept is `holder since milliseconds`. It has no time to live: that would be a moment of this node's clock, and if
-- another node takes over, or the clock is put right, nobody would get the work of a dead server until it is reached. A
-- moment that is ahead was by such a clock; who holds the work says so again soon.

local now = redis.call('TIME')
now = now[1] * 1000 + math.floor(now[2] / 1000)
local left, has = tonumber(ARGV[3]), {}
for place, lease in ipairs(KEYS) do
  local holder, since, held_for = string.match(redis.call('GET', lease) or '', '^(%S+) (%d+) (%d+)$')
  has[place] = 0
  if not (holder and holder ~= ARGV[1] and math.abs(now - since) < tonumber(held_for)) then
    if ARGV[2] == '0' then
      redis.call('DEL', lease)
    elseif left > 0 then
      redis.call('SET', lease, string.format('%s %.0f %s', ARGV[1], now, ARGV[2]))
      left = left - 1
      has[place] = 1
    end
  end
end
return has
