-- What one server did in a slot, by the numbers of its commits: those it may still ask about, each with what it was
-- told, and `low`, below which everything is over. So whatever comes late or twice is known for what it is, and no
-- clock is asked: nodes have different ones, and a replica that takes over would let go of things too soon.

local ring = {}

-- Long enough for a server that does nothing here, and longer than any two clocks are apart.
ring.kept_for_s = 172800

-- What was told, or nothing.
function ring.find(key, number)
  for _, member in ipairs(redis.call('ZRANGE', key, number, number, 'BYSCORE')) do
    if member ~= 'low' then return string.sub(member, #number + 2) end
  end
end

function ring.is_over(key, number) return tonumber(redis.call('ZSCORE', key, 'low') or 0) > tonumber(number) end

-- Writes something, so that whoever waits for replicas waits for all that was written here before.
function ring.touch(key) redis.call('EXPIRE', key, ring.kept_for_s) end

function ring.keep(key, number, low, told)
  redis.call('ZREMRANGEBYSCORE', key, '-inf', '(' .. low)
  redis.call('ZADD', key, number, number .. ' ' .. told)
  redis.call('ZADD', key, 'GT', low, 'low')
  if redis.call('TTL', key) * 2 < ring.kept_for_s then ring.touch(key) end
end

-- What was told, as an answer.
function ring.answer(told)
  local answer = {'done'}
  for word in string.gmatch(told, '%S+') do answer[#answer + 1] = word end
  return answer
end

