-- The keys of some transactions that are open in a slot; nothing for one that is not.
--
-- KEYS  open
-- ARGV  transactions…

local found = {}
for place, transaction in ipairs(ARGV) do
  local packed = redis.call('HGET', KEYS[1], 't' .. transaction)
  found[place] = packed and cmsgpack.unpack(packed)[1]
end
return found
