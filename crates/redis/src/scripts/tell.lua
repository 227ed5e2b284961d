-- What a commit tells.

-- Where a number that is told is kept: places of its list, hash and second list, and how many words say so. The last of
-- them is the field.
local function tells_of(args, at)
  if args[at] == 'K' then return args[at + 1], args[at + 2], nil, 4 end -- list off field
  if args[at] == 'S' then return args[at + 1], args[at + 3], args[at + 2], 5 end -- shown hidden off field
  return nil, args[at + 1], nil, 3 -- 'k': hash field
end

-- Numbers as they are now, each as a cardinality and what is added to it. A rank is one by itself: 'r', order among score
-- element.
local function tell(keys, base, args, at, last, told)
  while at <= last do
    if args[at] == 'r' then
      told[#told + 1] = (before(keys[base + tonumber(args[at + 1])], args[at + 2], args[at + 3], args[at + 4]))
      told[#told + 1] = '0'
      at = at + 5
    else
      local list, hash, twin, width = tells_of(args, at)
      local length = list and call('ZCARD', keys[base + tonumber(list)]) or 0
      if twin then length = length + call('ZCARD', keys[base + tonumber(twin)]) end
      told[#told + 1] = length
      told[#told + 1] = call('HGET', keys[base + tonumber(hash)], args[at + width - 1]) or '0'
      at = at + width
    end
  end
  return told
end

