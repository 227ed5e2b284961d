-- Ends one slot's share of a transaction whose outcome is known. Doing it again does nothing, and a share that comes
-- later is not taken any more.
--
-- KEYS  open ring rows…
-- ARGV  transaction done|cancelled number low

local open, transaction, number = KEYS[1], ARGV[1], ARGV[3]
local packed = call('HGET', open, 't' .. transaction)
if not packed then
  if ring.find(KEYS[2], number) then
    ring.touch(KEYS[2])
  else
    ring.keep(KEYS[2], number, ARGV[4], '')
  end
  return {'gone'}
end
local kept = cmsgpack.unpack(packed)
local ops = kept[2]
if ARGV[2] == 'done' then apply(KEYS, 2, ops, 1, #ops) end

local function release(kind, names)
  for _, name in ipairs(names) do
    if call('HINCRBY', open, kind .. name, -1) <= 0 then call('HDEL', open, kind .. name) end
  end
end
release('s', kept[3])
for _, name in ipairs(kept[4]) do call('HDEL', open, 'x' .. name) end
release('i', kept[5])
call('HDEL', open, 't' .. transaction, 'r' .. transaction, 'q' .. transaction)
ring.keep(KEYS[2], number, ARGV[4], '')
return {'done'}
