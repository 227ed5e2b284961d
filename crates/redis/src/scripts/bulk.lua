-- New edges with nothing attached, many to one list: for a store without slots in which nobody was ever suspended.
--
-- First the single ones, each the only one to its list, which is known to have others: number first, then object,
-- score and member of each; the keys from `first` on are the list and the list of the subject of each.
-- Then groups: list index entry object number first, then the members, then score and member of each; the keys from
-- `first` on are the lists of the subjects.

local bulk = {}

-- Where the groups begin.
local function groups_at(at) return at + 2 + 3 * tonumber(ARGV[at]) end

-- Whether one of several edges of a list is there already. A single one is found out when it is made.
function bulk.moved(base, at)
  at = groups_at(at)
  while at <= #ARGV do
    local number, members = tonumber(ARGV[at + 4]), at + 6
    if number > 1 then
      local list = KEYS[base + tonumber(ARGV[at])]
      local scores = call('ZMSCORE', list, unpack(ARGV, members, members + number - 1))
      for place = 1, number do
        if scores[place] then return true end
      end
    end
    at = members + 3 * number
  end
  return false
end

-- Takes back every group from one to before another.
local function undo(base, from, to)
  while from < to do
    local number, members = tonumber(ARGV[from + 4]), from + 6
    local list, first = KEYS[base + tonumber(ARGV[from])], base + tonumber(ARGV[from + 5])
    call('ZREM', list, unpack(ARGV, members, members + number - 1))
    if call('EXISTS', list) == 0 then call('ZREM', KEYS[base + tonumber(ARGV[from + 1])], ARGV[from + 2]) end
    -- One that could not be made has a key that is somebody else's.
    for place = 0, number - 1 do redis.pcall('ZREM', KEYS[first + place], ARGV[from + 3]) end
    from = members + 3 * number
  end
end

-- Takes back the first of the single ones.
local function undo_singles(base, at, number)
  local key, place = base + tonumber(ARGV[at + 1]), at + 2
  for _ = 1, number do
    call('ZREM', KEYS[key], ARGV[place + 2])
    redis.pcall('ZREM', KEYS[key + 1], ARGV[place])
    key, place = key + 2, place + 3
  end
end

local function apply_singles(base, at, told)
  local number, key, place = tonumber(ARGV[at]), base + tonumber(ARGV[at + 1]), at + 2
  for made = 0, number - 1 do
    local list = KEYS[key]
    if call('ZADD', list, 'NX', ARGV[place + 1], ARGV[place + 2]) == 0 then
      undo_singles(base, at, made)
      return {'moved'}
    end
    local size = call('ZCARD', list)
    local added = size > 1 and redis.pcall('ZADD', KEYS[key + 1], ARGV[place + 1], ARGV[place])
    if type(added) ~= 'number' then
      undo_singles(base, at, made + 1)
      return added or {'unlisted'}
    end
    told[#told + 1], told[#told + 2] = size, '0'
    key, place = key + 2, place + 3
  end
end

local function apply_groups(base, from, told)
  local at = from
  while at <= #ARGV do
    local number = tonumber(ARGV[at + 4])
    local scores = at + 6 + number
    local list, object, first = KEYS[base + tonumber(ARGV[at])], ARGV[at + 3], base + tonumber(ARGV[at + 5])
    if number > 1 then
      call('ZADD', list, unpack(ARGV, scores, scores + 2 * number - 1))
    elseif call('ZADD', list, 'NX', ARGV[scores], ARGV[scores + 1]) == 0 then
      -- This one is another's, and stays.
      undo(base, from, at)
      return {'moved'}
    end
    local size = call('ZCARD', list)
    if size == number then call('ZADD', KEYS[base + tonumber(ARGV[at + 1])], 0, ARGV[at + 2]) end
    for place = 0, number - 1 do
      local added = redis.pcall('ZADD', KEYS[first + place], ARGV[scores + 2 * place], object)
      if type(added) == 'table' then
        undo(base, from, scores + 2 * number)
        return added
      end
    end
    told[#told + 1], told[#told + 2] = size, '0'
    at = scores + 2 * number
  end
end

-- Makes them all and tells the counts; or makes none, and says what is in the way.
function bulk.apply(base, singles, told)
  local failed = apply_singles(base, singles, told)
  if failed then return failed end
  failed = apply_groups(base, groups_at(singles), told)
  if failed then undo_singles(base, singles, tonumber(ARGV[singles])) end
  return failed
end

-- The counts as they are now.
function bulk.tell(base, at, told)
  local key = base + tonumber(ARGV[at + 1])
  for single = 0, tonumber(ARGV[at]) - 1 do
    told[#told + 1] = call('ZCARD', KEYS[key + 2 * single])
    told[#told + 1] = '0'
  end
  at = groups_at(at)
  while at <= #ARGV do
    told[#told + 1] = call('ZCARD', KEYS[base + tonumber(ARGV[at])])
    told[#told + 1] = '0'
    at = at + 6 + 3 * tonumber(ARGV[at + 4])
  end
  return told
end

