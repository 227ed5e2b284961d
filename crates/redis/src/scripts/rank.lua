-- How many stand before a place in an order. Its elements are in order: by score, then by their bytes.

-- Whether one text comes before another by its bytes; what Lua thinks of that depends on the language of the machine.
local function precedes(one, other)
  for place = 1, math.min(#one, #other) do
    local a, b = string.byte(one, place), string.byte(other, place)
    if a ~= b then return a < b end
  end
  return #one < #other
end

-- Before all of that score (f), behind all of them (l), or where an element stands or would (a). Also whether it does.
local function before(order, among, score, element)
  if among == 'l' then return redis.call('ZCOUNT', order, '-inf', score) end
  local low = redis.call('ZCOUNT', order, '-inf', '(' .. score)
  if among == 'f' then return low end
  if tonumber(redis.call('ZSCORE', order, element) or 'x') == tonumber(score) then
    return redis.call('ZRANK', order, element), true
  end
  local high = redis.call('ZCOUNT', order, '-inf', score)
  while low < high do
    local middle = math.floor((low + high) / 2)
    if precedes(redis.call('ZRANGE', order, middle, middle)[1], element) then
      low = middle + 1
    else
      high = middle
    end
  end
  return low, false
end

