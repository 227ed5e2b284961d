-- Rows and totals of one slot, as of one moment.
--
-- KEYS  open unusual time stamp rows…
-- ARGV  slots|alone|usual asks…     Answers the time and how pressing it is to write it down (0 of a slot, where another
--                       node is asked), what is open, and one value for each ask: an edge as h (if hidden), its score, the
--                       count (or - if it is not the length) and its data, with spaces between.

local call = redis.call
if ARGV[1] == 'usual' and call('EXISTS', KEYS[2]) == 1 then return {'unusual'} end
local found
if ARGV[1] == 'slots' then
  found = {'0', 0, opened(KEYS[1])}
else
  local now, pressing = store_time(call('GET', KEYS[3]), call('GET', KEYS[4]), '-')
  found = {string.format('%.0f', now), pressing, {}}
end
local at, last, next = 2, #ARGV, 4
while at <= last do
  local op, first = ARGV[at], KEYS[4 + tonumber(ARGV[at + 1])]
  if op == 'e' then -- shown hidden data off field member
    local member = ARGV[at + 6]
    local hidden, score = '', call('ZSCORE', first, member)
    if not score then hidden, score = 'h', call('ZSCORE', KEYS[4 + tonumber(ARGV[at + 2])], member) end
    if score then
      local count = call('HEXISTS', KEYS[4 + tonumber(ARGV[at + 4])], ARGV[at + 5]) == 1 and '-' or call('ZCARD', first)
      local data = call('HGET', KEYS[4 + tonumber(ARGV[at + 3])], member) or ''
      found[next] = hidden .. score .. ' ' .. count .. ' ' .. data
    else
      found[next] = false
    end
    at = at + 7
  elseif op == 'l' then -- several edges of a list: shown data number members
    local number, data = tonumber(ARGV[at + 3]), KEYS[4 + tonumber(ARGV[at + 2])]
    local scores
    if number == 1 then
      scores = {call('ZSCORE', first, ARGV[at + 4])}
    else
      scores = call('ZMSCORE', first, unpack(ARGV, at + 4, at + 3 + number))
    end
    for place = 1, number do
      local score = scores[place]
      found[next] = score
        and score .. ' ' .. call('ZCARD', first) .. ' ' .. (call('HGET', data, ARGV[at + 3 + place]) or '')
      next = next + 1
    end
    next = next - 1
    at = at + 4 + number
  elseif op == 'm' then -- one edge of each of several lists, whose keys follow each other: shown number members
    local place, number = 4 + tonumber(ARGV[at + 1]), tonumber(ARGV[at + 2])
    for member = at + 3, at + 2 + number do
      local list = KEYS[place]
      local score = call('ZSCORE', list, ARGV[member])
      found[next] = score
        and score .. ' ' .. call('ZCARD', list) .. ' ' .. (call('HGET', KEYS[place + 1], ARGV[member]) or '')
      next, place = next + 1, place + 2
    end
    next = next - 1
    at = at + 3 + number
  elseif op == 'c' then -- a length: key
    found[next], found[next + 1] = call('ZCARD', first), '0'
    next = next + 1
    at = at + 2
  elseif op == 's' then -- key
    found[next] = call('GET', first)
    at = at + 2
  elseif op == 'h' then -- key field
    found[next] = call('HGET', first, ARGV[at + 2])
    at = at + 3
  elseif op == 'r' then -- how many stand before a place: order among score element
    found[next] = before(first, ARGV[at + 2], ARGV[at + 3], ARGV[at + 4])
    at = at + 5
  else -- 't': a total as its length and what is added to it: shown hidden off field
    found[next] = call('ZCARD', first)
    if ARGV[at + 2] ~= '0' then found[next] = found[next] + call('ZCARD', KEYS[4 + tonumber(ARGV[at + 2])]) end
    next = next + 1
    found[next] = call('HGET', KEYS[4 + tonumber(ARGV[at + 3])], ARGV[at + 4]) or '0'
    at = at + 5
  end
  next = next + 1
end
return found
