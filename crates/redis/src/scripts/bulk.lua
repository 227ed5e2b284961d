-- New edges with nothing attached, many to one list: for a store without slots in which nobody was ever suspended.
--
-- Groups of words: list index entry object number first, then the members, then score and member of each. The
-- lists of the subjects are the keys from `first` on.

local bulk = {}

-- Whether one of the edges is there already.
function bulk.moved(base, at)
  while at <= #ARGV do
    local number, members = tonumber(ARGV[at + 4]), at + 6
    local list = KEYS[base + tonumber(ARGV[at])]
    if number == 1 then
      if call('ZSCORE', list, ARGV[members]) then return true end
    else
      local scores = call('ZMSCORE', list, unpack(ARGV, members, members + number - 1))
      for place = 1, number do
        if scores[place] then return true end
      end
    end
    at = members + 3 * number
  end
  return false
end

-- Takes back the groups before this one, and so many edges of it: a key is not what it should be.
local function undo(base, from, at, edges)
  while from <= at do
    local number, members = tonumber(ARGV[from + 4]), from + 6
    local first = base + tonumber(ARGV[from + 5])
    call('ZREM', KEYS[base + tonumber(ARGV[from])], unpack(ARGV, members, members + number - 1))
    for place = 0, (from == at and edges or number) - 1 do call('ZREM', KEYS[first + place], ARGV[from + 3]) end
    from = members + 3 * number
  end
end

-- Makes them all. Answers an error if it cannot, and then has made none.
function bulk.apply(base, from)
  local at = from
  while at <= #ARGV do
    local number, scores = tonumber(ARGV[at + 4]), at + 6 + tonumber(ARGV[at + 4])
    local list, object, first = KEYS[base + tonumber(ARGV[at])], ARGV[at + 3], base + tonumber(ARGV[at + 5])
    call('ZADD', list, unpack(ARGV, scores, scores + 2 * number - 1))
    if call('ZCARD', list) == number then call('ZADD', KEYS[base + tonumber(ARGV[at + 1])], 0, ARGV[at + 2]) end
    for place = 0, number - 1 do
      local added = redis.pcall('ZADD', KEYS[first + place], ARGV[scores + 2 * place], object)
      if type(added) == 'table' then
        undo(base, from, at, place)
        return added
      end
    end
    at = scores + 2 * number
  end
end

-- The counts as they are now.
function bulk.tell(base, at, told)
  while at <= #ARGV do
    told[#told + 1] = call('ZCARD', KEYS[base + tonumber(ARGV[at])])
    told[#told + 1] = '0'
    at = at + 6 + 3 * tonumber(ARGV[at + 4])
  end
  return told
end

