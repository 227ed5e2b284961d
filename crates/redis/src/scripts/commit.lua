-- One commit, or one slot's share of it: checks everything that was decided on, then changes it.
--
-- KEYS  open ring [record [stamp unusual]] rows…
-- ARGV  mode transaction record/usual stamp/others #checks #changes #tells number low waits #fills
--       fills… checks… changes… tells… bulk…
--   alone    a store without slots: nothing can be open. `usual` says that nothing unusual was ever done in it, on
--            which bulk stands; `unusual` that this is
--   commit   the slot that decides for all the `others` of the transaction, or the only one
--   prepare  any other slot: what is decided elsewhere is kept until that is known, and held against others
--
-- Answers `done` and the numbers that were asked for: as they are right after the commit; for a share, as they are
-- before it, and they stay so until it is finished.

local mode, transaction, number, low = ARGV[1], ARGV[2], ARGV[8], ARGV[9]
local first = 12 + tonumber(ARGV[11])
local changes = first + tonumber(ARGV[5])
local tells = changes + tonumber(ARGV[6])
local groups = tells + tonumber(ARGV[7])
local open = KEYS[1]
local base = mode == 'prepare' and 2 or (mode == 'commit' and 3 or 5)
local busy = mode ~= 'alone' and call('EXISTS', open) == 1
local writes_nothing = changes == tells and ARGV[groups] == '0' and #ARGV == groups + 1

-- How a share is listed: one that changes something, or one that only looks.
local letter = changes < tells and 'r' or 'q'

if mode == 'prepare' then
  local kept = busy and call('HGET', open, letter .. transaction)
  if kept then
    -- Written again, so that who waits for replicas waits until they have it.
    call('HSET', open, letter .. transaction, kept)
    fill(base, 12, first, changes, tells)
    return tell(KEYS, base, ARGV, tells, groups - 1, {'done'})
  end
  if ring.find(KEYS[2], number) then return {'cancelled'} end
else
  local state, told = call('GET', KEYS[3]), ring.find(KEYS[2], number)
  if told then
    ring.touch(KEYS[2])
    return ring.answer(told)
  end
  if state and string.sub(state, 1, 4) == 'done' then
    call('SET', KEYS[3], state, 'KEEPTTL')
    return ring.answer(string.sub(state, 5))
  end
  if state then return {'cancelled'} end
  if mode == 'alone' and ARGV[3] == 'usual' and call('EXISTS', KEYS[5]) == 1 then return {'unusual'} end
end
if ring.is_over(KEYS[2], number) then return {'cancelled'} end

fill(base, 12, first, changes, tells)

local shared, exclusive, intended = {}, {}, {}

local function held(kind, name) return busy and call('HEXISTS', open, kind .. name) == 1 end

-- A row: whoever looks at it shares it, whoever changes it has it alone.
local function free(name, writes)
  if mode ~= 'alone' then
    if held('x', name) or (writes == '1' and held('s', name)) then return false end
    if writes == '1' then exclusive[#exclusive + 1] = name else shared[#shared + 1] = name end
  end
  return true
end

local at = first
while at < changes do
  local op, writes = ARGV[at], ARGV[at + 1]
  local function key(place) return KEYS[base + tonumber(ARGV[at + place])] end
  if op == 'a' then -- an edge that is not there: shown hidden member
    local list, member = key(2), ARGV[at + 4]
    if call('ZSCORE', list, member) or call('ZSCORE', key(3), member) then return {'moved'} end
    if not free(list .. '/' .. member, writes) then return {'locked'} end
    at = at + 5
  elseif op == 'e' or op == 'E' then -- one that is: shown list data member score [value]
    local member = ARGV[at + 5]
    if tonumber(call('ZSCORE', key(3), member) or 'x') ~= tonumber(ARGV[at + 6]) then return {'moved'} end
    local value = false
    if op == 'E' then value = ARGV[at + 7] end
    if call('HGET', key(4), member) ~= value then return {'moved'} end
    if not free(key(2) .. '/' .. member, writes) then return {'locked'} end
    at = at + (op == 'E' and 8 or 7)
  elseif op == 'n' then -- nothing under a key
    if call('EXISTS', key(2)) == 1 then return {'moved'} end
    if not free(key(2), writes) then return {'locked'} end
    at = at + 3
  elseif op == 's' then -- a key and its value
    if call('GET', key(2)) ~= ARGV[at + 3] then return {'moved'} end
    if not free(key(2), writes) then return {'locked'} end
    at = at + 4
  elseif op == 'g' then -- nothing in a field
    if call('HEXISTS', key(2), ARGV[at + 3]) == 1 then return {'moved'} end
    if not free(key(2) .. '/' .. ARGV[at + 3], writes) then return {'locked'} end
    at = at + 4
  elseif op == 'h' then -- a field and its value
    if call('HGET', key(2), ARGV[at + 3]) ~= ARGV[at + 4] then return {'moved'} end
    if not free(key(2) .. '/' .. ARGV[at + 3], writes) then return {'locked'} end
    at = at + 5
  elseif op == 't' then -- a total that was decided on: shown hidden-or-0 off field value
    local list, twin = key(2), key(2)
    local size = call('ZCARD', list) + (call('HGET', key(4), ARGV[at + 5]) or 0)
    if ARGV[at + 3] ~= '0' then
      twin = key(3)
      size = size + call('ZCARD', twin)
    end
    if size ~= tonumber(ARGV[at + 6]) then return {'moved'} end
    if mode ~= 'alone' then
      for _, name in ipairs({list, twin, key(4) .. '/' .. ARGV[at + 5]}) do
        if held('i', name) then return {'locked'} end
        shared[#shared + 1] = '#' .. name
      end
    end
    at = at + 7
  elseif op == 'T' then -- a number that was decided on: hash field value
    if (call('HGET', key(2), ARGV[at + 3]) or '0') ~= ARGV[at + 4] then return {'moved'} end
    if mode ~= 'alone' then
      local name = key(2) .. '/' .. ARGV[at + 3]
      if held('i', name) then return {'locked'} end
      shared[#shared + 1] = '#' .. name
    end
    at = at + 5
  elseif op == 'r' then -- how many stood before a place: order among score element number
    if before(key(2), ARGV[at + 3], ARGV[at + 4], ARGV[at + 5]) ~= tonumber(ARGV[at + 6]) then return {'moved'} end
    if mode ~= 'alone' then
      if held('i', key(2)) then return {'locked'} end
      shared[#shared + 1] = '#' .. key(2)
    end
    at = at + 7
  else
    error('no such check: ' .. tostring(op))
  end
end

-- A key of somebody else would stop the changes half way, so every kind of key is tried before the first change.
local tried = {}
local function try(command, place)
  if not tried[place] then
    call(command, KEYS[base + tonumber(place)])
    tried[place] = true
  end
end

-- A number in two pieces, each of which a floating-point number can tell exactly.
local function pieces(number)
  local sign, digits = string.match(number, '^(-?)([1-9]%d*)$')
  if number == '0' then return 0, 0 end
  if not digits then error('not a number: ' .. number) end
  local high, low = tonumber(string.sub(digits, 1, -10)) or 0, tonumber(string.sub(digits, -9))
  if sign == '-' then return -high, -low end
  return high, low
end

-- What stands in the way of adding to a number: that the sum would not fit. And where adding comes later, whoever adds much
-- or adds near the ends has the number for itself until then.
local function refused(hash, field, by)
  local high, low = pieces(call('HGET', hash, field) or '0')
  local high_by, low_by = pieces(by)
  local after, rest = high + high_by + math.floor((low + low_by) / 1e9), (low + low_by) % 1e9
  if after > 9223372036 or (after == 9223372036 and rest > 854775807) then return {'moved'} end
  if after < -9223372037 or (after == -9223372037 and rest < 145224192) then return {'moved'} end
  if mode ~= 'alone' then
    local name = hash .. '/' .. field
    if held('s', '#' .. name) then return {'locked'} end
    if math.abs(high) > 4e9 or math.abs(high_by) > 2000 then
      if held('i', name) then return {'locked'} end
      shared[#shared + 1] = '#' .. name
    end
    intended[#intended + 1] = name
  end
end

-- A list that becomes longer or shorter: several may do that at once, unless somebody counts on its length.
local place = changes
while place < tells do
  local op = ARGV[place]
  if op == 'z' or op == 'Z' or op == 'x' or op == 'X' then
    try('ZCARD', ARGV[place + 1])
    if op == 'X' then try('ZCARD', ARGV[place + 3]) end
    if op == 'Z' or op == 'X' then try('ZCARD', ARGV[place + 4]) end
    if mode ~= 'alone' then
      local list = KEYS[base + tonumber(ARGV[place + 1])]
      if held('s', '#' .. list) then return {'locked'} end
      -- An entry is checked on the object's side alone. Here one that another commit has not finished yet is waited for: whoever
      -- came later would be finished first, and undone by the earlier.
      local entry = list .. '/' .. ARGV[place + 2]
      if held('x', entry) then return {'locked'} end
      exclusive[#exclusive + 1] = entry
      intended[#intended + 1] = list
    end
  elseif op == 'S' or op == 's' then
    try('ZCARD', ARGV[place + (op == 'S' and 3 or 2)])
  else
    try('HLEN', ARGV[place + 1])
    if op == 'F' or op == 'f' then try('ZCARD', ARGV[place + (op == 'F' and 4 or 3)]) end
    if op == 'N' then
      if ARGV[place + 4] ~= '0' then try('ZCARD', ARGV[place + 4]) end
      local why = refused(KEYS[base + tonumber(ARGV[place + 1])], ARGV[place + 2], ARGV[place + 3])
      if why then return why end
    end
    if op == 'Q' then -- whoever takes numbers waits for who has taken some and is not over
      try('ZCARD', ARGV[place + 4])
      local hash, field = KEYS[base + tonumber(ARGV[place + 1])], ARGV[place + 2]
      if tonumber(call('HGET', hash, field) or 0) > 9007199254740992 - ARGV[place + 3] then return {'exhausted'} end
      if mode ~= 'alone' then
        local name = hash .. '/' .. field
        if held('s', '#' .. name) then return {'locked'} end
        intended[#intended + 1] = name
      end
    end
    if op == 'I' then
      local is = call('HGET', KEYS[base + tonumber(ARGV[place + 1])], ARGV[place + 2])
      if is and not tonumber(is) then error('not a number: ' .. is) end
      if mode ~= 'alone' then
        local name = KEYS[base + tonumber(ARGV[place + 1])] .. '/' .. ARGV[place + 2]
        if held('s', '#' .. name) then return {'locked'} end
        intended[#intended + 1] = name
      end
    end
  end
  place = place + (({z = 4, Z = 6, x = 3, X = 6, S = 5, s = 4, H = 4, h = 3, F = 6, f = 5, I = 4, M = 2, N = 6, Q = 6})[op])
end

-- A number that is told is nobody else's to add to until this is finished; and what others have added to it must be there.
-- So it is with an order of which a rank is told.
place = tells
while place < groups do
  local names, width
  if ARGV[place] == 'r' then
    try('ZCARD', ARGV[place + 1])
    names, width = {KEYS[base + tonumber(ARGV[place + 1])]}, 5
  else
    local list, hash, twin, words = tells_of(ARGV, place)
    try('HLEN', hash)
    names, width = {KEYS[base + tonumber(hash)] .. '/' .. ARGV[place + words - 1]}, words
    if list then names[2] = KEYS[base + tonumber(list)] end
    if twin then names[3] = KEYS[base + tonumber(twin)] end
  end
  if mode ~= 'alone' then
    for _, name in ipairs(names) do
      if held('i', name) then return {'locked'} end
      shared[#shared + 1] = '#' .. name
    end
  end
  place = place + width
end
local stamp = mode == 'alone' and tonumber(call('GET', KEYS[4]) or 0)

if mode == 'prepare' then
  local ops = {}
  for place = changes, tells - 1 do ops[#ops + 1] = ARGV[place] end
  local now = call('TIME')
  local kept = {KEYS, ops, shared, exclusive, intended}
  call('HSET', open, 't' .. transaction, cmsgpack.pack(kept))
  call('HSET', open, letter .. transaction, string.format('%.0f ', now[1] * 1000 + math.floor(now[2] / 1000)) .. ARGV[3])
  for _, name in ipairs(shared) do call('HINCRBY', open, 's' .. name, 1) end
  for _, name in ipairs(exclusive) do call('HSET', open, 'x' .. name, transaction) end
  for _, name in ipairs(intended) do call('HINCRBY', open, 'i' .. name, 1) end
  return tell(KEYS, base, ARGV, tells, groups - 1, {'done'})
end

if bulk.moved(base, groups) then return {'moved'} end
local told = {}
local failed = bulk.apply(base, groups, told)
if failed then return failed end
apply(KEYS, base, ARGV, changes, tells - 1)
local answer = tell(KEYS, base, ARGV, tells, groups - 1, {'done'})
if changes < tells then
  bulk.tell(base, groups, answer)
else
  for place = 1, #told do answer[#answer + 1] = told[place] end
end
-- Nothing to be remembered, unless somebody waits until what was looked at is safe.
if writes_nothing and ARGV[10] == '0' then return answer end
local words = table.concat(answer, ' ', 2)
ring.keep(KEYS[2], number, low, words)
if mode == 'alone' then
  if ARGV[3] == 'unusual' then call('SET', KEYS[5], 1) end
  if not stamp or stamp < tonumber(ARGV[4]) then call('SET', KEYS[4], ARGV[4]) end
elseif ARGV[4] == 'others' then
  call('SET', KEYS[3], 'done ' .. words)
end
return answer
