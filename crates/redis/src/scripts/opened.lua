-- What is open in a slot: for each transaction its name, its record, and its age in milliseconds. One that was written
-- down by a node whose clock is ahead has a negative age, and counts as old: calling off is safe at any time. Those that only
-- look at something here (q) matter to nobody who reads.

local function opened(open, all)
  local found = {}
  if redis.call('EXISTS', open) == 0 then return found end
  local now = redis.call('TIME')
  now = now[1] * 1000 + math.floor(now[2] / 1000)
  local fields = redis.call('HGETALL', open)
  for place = 1, #fields, 2 do
    local letter = string.sub(fields[place], 1, 1)
    if letter == 'r' or (all and letter == 'q') then
      local since, record = string.match(fields[place + 1], '^(%d+) (.*)$')
      local age = now - since
      found[#found + 1] = {string.sub(fields[place], 2), record, tostring(age < 0 and 1000000 or age)}
    end
  end
  return found
end

