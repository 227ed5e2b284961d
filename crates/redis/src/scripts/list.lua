-- One page of a list with what is attached to its edges.
--
-- KEYS  open list data
-- ARGV  slots score count     Answers what is open, then member, score and data of each.

local call = redis.call
local found = {ARGV[1] == '1' and opened(KEYS[1]) or {}}
local page = call('ZRANGE', KEYS[2], ARGV[2], '+inf', 'BYSCORE', 'LIMIT', 0, ARGV[3], 'WITHSCORES')
local has_data = call('EXISTS', KEYS[3]) == 1
for place = 1, #page, 2 do
  found[#found + 1] = page[place]
  found[#found + 1] = page[place + 1]
  found[#found + 1] = has_data and call('HGET', KEYS[3], page[place]) or ''
end
return found
