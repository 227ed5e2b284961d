-- Writes the store's time down. Whoever asks says what it should be by its own reckoning, or 0: that counts where another
-- node has taken over, with a clock of its own.
--
-- KEYS  time stamp
-- ARGV  cluster expected     Answers the time and the node's clock.

local node = node_name(ARGV[1])
local kept = redis.call('GET', KEYS[1])
local now, _, clock, bound, home = store_time(kept, redis.call('GET', KEYS[2]), node)
local expected = tonumber(ARGV[2])
if home and home ~= node and expected > 0 and math.abs(expected - clock) < day and math.abs(bound - expected) < day then
  now = math.max(expected, bound)
end
redis.call('SET', KEYS[1], string.format('%.0f %.0f %.0f %s', clock, now, now + 2e6, node))
return {string.format('%.0f', now), string.format('%.0f', clock)}
