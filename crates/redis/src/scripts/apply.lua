-- Changes, one after another: a letter, and what it needs. A key is named by its place behind the first keys.

local call = redis.call

local function apply(keys, base, args, at, last)
  local function key(place) return keys[base + tonumber(args[place])] end
  while at <= last do
    local op = args[at]
    if op == 'z' then -- key member score
      call('ZADD', key(at + 1), args[at + 3], args[at + 2])
      at = at + 4
    elseif op == 'Z' then -- the same where every key is listed: key member score index entry
      local list = key(at + 1)
      if call('ZADD', list, args[at + 3], args[at + 2]) == 1 and call('ZCARD', list) == 1 then
        call('ZADD', key(at + 4), 0, args[at + 5])
      end
      at = at + 6
    elseif op == 'x' then -- key member
      call('ZREM', key(at + 1), args[at + 2])
      at = at + 3
    elseif op == 'X' then -- key member twin index entry
      local list = key(at + 1)
      call('ZREM', list, args[at + 2])
      if call('EXISTS', list, key(at + 3)) == 0 then call('ZREM', key(at + 4), args[at + 5]) end
      at = at + 6
    elseif op == 'S' then -- key value index entry
      call('SET', key(at + 1), args[at + 2])
      call('ZADD', key(at + 3), 0, args[at + 4])
      at = at + 5
    elseif op == 's' then -- key index entry
      call('DEL', key(at + 1))
      call('ZREM', key(at + 2), args[at + 3])
      at = at + 4
    elseif op == 'H' then -- key field value
      call('HSET', key(at + 1), args[at + 2], args[at + 3])
      at = at + 4
    elseif op == 'h' then -- key field
      call('HDEL', key(at + 1), args[at + 2])
      at = at + 3
    elseif op == 'F' then -- the same where every hash is listed: key field value index entry
      if call('HSET', key(at + 1), args[at + 2], args[at + 3]) == 1 then call('ZADD', key(at + 4), 0, args[at + 5]) end
      at = at + 6
    elseif op == 'f' then -- key field index entry
      call('HDEL', key(at + 1), args[at + 2])
      if call('EXISTS', key(at + 1)) == 0 then call('ZREM', key(at + 3), args[at + 4]) end
      at = at + 5
    elseif op == 'I' then -- key field by
      local hash = key(at + 1)
      if call('HINCRBY', hash, args[at + 2], args[at + 3]) == 0 then call('HDEL', hash, args[at + 2]) end
      at = at + 4
    elseif op == 'M' then -- key: an edge has another kind, so whoever counts them meanwhile begins again
      call('HDEL', key(at + 1), '.mark')
      at = at + 2
    elseif op == 'N' then -- the same where a hash may be listed: key field by index-or-0 entry
      local hash, listed = key(at + 1), args[at + 4] ~= '0'
      local after = call('HINCRBY', hash, args[at + 2], args[at + 3])
      if after == 0 then
        call('HDEL', hash, args[at + 2])
        if listed and call('EXISTS', hash) == 0 then call('ZREM', key(at + 4), args[at + 5]) end
      elseif listed and after == tonumber(args[at + 3]) then -- it is new
        call('ZADD', key(at + 4), 0, args[at + 5])
      end
      at = at + 6
    elseif op == 'Q' then -- numbers of a sequence: key field count index entry
      local hash = key(at + 1)
      if call('HINCRBY', hash, args[at + 2], args[at + 3]) == tonumber(args[at + 3]) then
        call('ZADD', key(at + 4), 0, args[at + 5])
      end
      at = at + 6
    else
      error('no such change: ' .. tostring(op))
    end
  end
end

