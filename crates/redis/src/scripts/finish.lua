-- Ends one slot's share of a transaction whose outcome is known. Doing it again does nothing.
--
-- KEYS  open rows…
-- ARGV  transaction done|cancelled

local open, transaction = KEYS[1], ARGV[1]
local packed = call('HGET', open, 't' .. transaction)
if not packed then return {'gone'} end
local kept = cmsgpack.unpack(packed)
local ops, words = kept[4], kept[5]
if ARGV[2] == 'done' then apply(KEYS, 1, ops, 1, #ops) end

local function release(kind, names)
  for _, name in ipairs(names) do
    if call('HINCRBY', open, kind .. name, -1) <= 0 then call('HDEL', open, kind .. name) end
  end
end
release('s', kept[6])
for _, name in ipairs(kept[7]) do call('HDEL', open, 'x' .. name) end
release('i', kept[8])
call('HDEL', open, 't' .. transaction)
return tell(KEYS, 1, words, 1, #words, {'done'})
