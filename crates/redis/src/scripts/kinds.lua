-- How many edges of a list there are of each kind, by what is attached to them, next to the numbers that are kept.
--
-- KEYS  kinds data shown
-- ARGV  all                  Counts at once. Answers how many of each kind, and what is kept of each.
-- ARGV  some mark cursor     Counts a part. Answers where the next one begins and whether no edge has got another kind
--                            since the first: whatever changes one takes the mark off. Then member and kind of each; with the
--                            last part, what is kept.

local call = redis.call

local function kind_of(member, text)
  if not call('ZSCORE', KEYS[3], member) then return end
  local kind = string.match(text, '^{"kind":"([^"\\]*)"')
  if kind then return kind end
  local read, data = pcall(cjson.decode, text)
  return read and type(data) == 'table' and type(data.kind) == 'string' and data.kind or nil
end

local function kept()
  local found, numbers = call('HGETALL', KEYS[1]), {}
  for place = 1, #found, 2 do
    if found[place] ~= '.mark' then
      numbers[#numbers + 1], numbers[#numbers + 2] = found[place], found[place + 1]
    end
  end
  return numbers
end

if ARGV[1] == 'all' then
  local counted, answer = {}, {}
  local data = call('HGETALL', KEYS[2])
  for place = 1, #data, 2 do
    local kind = kind_of(data[place], data[place + 1])
    if kind then counted[kind] = (counted[kind] or 0) + 1 end
  end
  for kind, number in pairs(counted) do
    answer[#answer + 1], answer[#answer + 2] = kind, tostring(number)
  end
  return {answer, kept()}
end

if ARGV[3] == '0' then call('HSET', KEYS[1], '.mark', ARGV[2]) end
local same = call('HGET', KEYS[1], '.mark') == ARGV[2]
local page = call('HSCAN', KEYS[2], ARGV[3], 'COUNT', 1000)
local found = {}
for place = 1, #page[2], 2 do
  local member = page[2][place]
  local kind = kind_of(member, page[2][place + 1])
  if kind then found[#found + 1], found[#found + 2] = member, kind end
end
if not same or page[1] == '0' then call('HDEL', KEYS[1], '.mark') end
return {page[1], same and 1 or 0, found, page[1] == '0' and kept() or {}}
