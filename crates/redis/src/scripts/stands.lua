-- Where one end of an edge stands, and whether something is on its way there.
--
-- KEYS  open shown hidden
-- ARGV  member slots     Answers whether something is on its way, then both scores or nothing.

local call = redis.call
local coming = 0
if ARGV[2] == '1' then coming = call('HEXISTS', KEYS[1], 'i' .. KEYS[2]) + call('HEXISTS', KEYS[1], 'i' .. KEYS[3]) end
return {coming, call('ZSCORE', KEYS[2], ARGV[1]) or '', call('ZSCORE', KEYS[3], ARGV[1]) or ''}
