-- What became of a commit; and, if nobody knows, that it is called off.
--
-- KEYS  record ring
-- ARGV  ask|cancel seconds waits number     Answers done, cancelled or nothing.

local state = redis.call('GET', KEYS[1])
if not state and ring.find(KEYS[2], ARGV[4]) then
  if ARGV[3] == '1' then ring.touch(KEYS[2]) end
  return 'done'
end
if not state and ARGV[1] == 'cancel' then
  state = 'cancelled'
  redis.call('SET', KEYS[1], state, 'EX', ARGV[2])
elseif state and ARGV[3] == '1' then
  -- Written again, so that who waits for replicas waits until they have it.
  redis.call('SET', KEYS[1], state, 'KEEPTTL')
end
return state and string.match(state, '^%a+') or ''
