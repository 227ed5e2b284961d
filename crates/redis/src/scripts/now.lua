-- The store's time.
--
-- KEYS  time stamp
-- ARGV  cluster     Answers the time, how pressing it is to write it down, the node's clock and the newest stamp.

local stamp = redis.call('GET', KEYS[2]) or '0'
local now, pressing, clock = store_time(redis.call('GET', KEYS[1]), stamp, node_name(ARGV[1]))
return {string.format('%.0f', now), pressing, string.format('%.0f', clock), stamp}
