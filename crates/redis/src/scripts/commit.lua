-- One commit, or one slot's share of it: checks everything that was decided on, then changes it.
--
-- KEYS  open [record [stamp]] rows…
-- ARGV  mode transaction record stamp/seconds #checks #changes checks… changes… tells…
--   alone    a store without slots: nothing can be open
--   commit   the slot that decides for all the others of the transaction, or the only one
--   prepare  any other slot: what is decided elsewhere is kept until that is known, and held against others

local mode, transaction, ttl = ARGV[1], ARGV[2], ARGV[4]
local first = 7
local changes = first + tonumber(ARGV[5])
local tells = changes + tonumber(ARGV[6])
local open = KEYS[1]
local base = mode == 'prepare' and 1 or (mode == 'commit' and 2 or 3)
local busy = mode ~= 'alone' and call('EXISTS', open) == 1

if mode == 'prepare' then
  if busy and call('HEXISTS', open, 't' .. transaction) == 1 then return {'done'} end
else
  local state = call('GET', KEYS[2])
  if state == 'done' then return tell(KEYS, base, ARGV, tells, #ARGV, {'done'}) end
  if state then return {'cancelled'} end
end

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
      if held('i', list) or held('i', twin) then return {'locked'} end
      shared[#shared + 1], shared[#shared + 2] = '#' .. list, '#' .. twin
    end
    at = at + 7
  else
    error('no such check: ' .. tostring(op))
  end
end

-- A list that becomes longer or shorter: several may do that at once, unless somebody counts on its length.
if mode ~= 'alone' then
  local place = changes
  while place < tells do
    local op = ARGV[place]
    if op == 'z' or op == 'Z' or op == 'x' or op == 'X' then
      local list = KEYS[base + tonumber(ARGV[place + 1])]
      if held('s', '#' .. list) then return {'locked'} end
      intended[#intended + 1] = list
    end
    place = place + (({z = 4, Z = 6, x = 3, X = 6, S = 5, s = 4, H = 4, h = 3, I = 4})[op])
  end
end

if mode == 'prepare' then
  local ops, words = {}, {}
  for place = changes, tells - 1 do ops[#ops + 1] = ARGV[place] end
  for place = tells, #ARGV do words[#words + 1] = ARGV[place] end
  local now = call('TIME')
  local kept = {ARGV[3], now[1] * 1000 + math.floor(now[2] / 1000), KEYS, ops, words, shared, exclusive, intended}
  call('HSET', open, 't' .. transaction, cmsgpack.pack(kept))
  for _, name in ipairs(shared) do call('HINCRBY', open, 's' .. name, 1) end
  for _, name in ipairs(exclusive) do call('HSET', open, 'x' .. name, transaction) end
  for _, name in ipairs(intended) do call('HINCRBY', open, 'i' .. name, 1) end
  return {'done'}
end

apply(KEYS, base, ARGV, changes, tells - 1)
if mode == 'alone' then
  call('SET', KEYS[2], 'done', 'EX', 60)
  local stamp = call('GET', KEYS[3])
  if not stamp or tonumber(stamp) < tonumber(ttl) then call('SET', KEYS[3], ttl) end
elseif ttl == '0' then
  call('SET', KEYS[2], 'done')
else
  call('SET', KEYS[2], 'done', 'EX', ttl)
end
return tell(KEYS, base, ARGV, tells, #ARGV, {'done'})
