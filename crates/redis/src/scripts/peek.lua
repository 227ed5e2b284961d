-- What is open in a slot: for each transaction its name, its record, its age in milliseconds, its keys.
--
-- KEYS  open

local now = redis.call('TIME')
now = now[1] * 1000 + math.floor(now[2] / 1000)
local found = {}
local fields = redis.call('HGETALL', KEYS[1])
for place = 1, #fields, 2 do
  if string.sub(fields[place], 1, 1) == 't' then
    local kept = cmsgpack.unpack(fields[place + 1])
    found[#found + 1] = {string.sub(fields[place], 2), kept[1], tostring(now - kept[2]), kept[3]}
  end
end
return found
