-- One page of an order.
--
-- KEYS  open order [rows]
-- ARGV  slots rank first last                    those with these places
-- ARGV  slots behind|ahead count score element   those right behind a place and downwards; right ahead and upwards
--       Answers what is open, then element and score of each; and its row, if the hash of those is named. It is under the id,
--       behind the sixteen digits that break ties.

local found = {ARGV[1] == '1' and opened(KEYS[1]) or {}}
local way, first, last = ARGV[2], ARGV[3], ARGV[4]
if way ~= 'rank' then
  local count, place, is_there = tonumber(ARGV[3]), before(KEYS[2], 'a', ARGV[4], ARGV[5])
  if way == 'behind' then
    first = is_there and place + 1 or place
    last = first + count - 1
  else
    first, last = math.max(place - count, 0), place - 1
  end
  if last < 0 then return found end
end
local page = redis.call('ZRANGE', KEYS[2], first, last, 'WITHSCORES')
for place = 1, #page, 2 do
  local from = way == 'ahead' and #page - place or place
  found[#found + 1], found[#found + 2] = page[from], page[from + 1]
  if KEYS[3] then found[#found + 1] = redis.call('HGET', KEYS[3], string.sub(page[from], 17)) end
end
return found
