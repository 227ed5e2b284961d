-- Scores against their order, as of one moment; or the order put right.
--
-- KEYS  hash order
-- ARGV  look|mend, then field text element score of each: the score as it was read, and where it stands.
--       Answers the numbers of those that are in one of both alone. What is in neither was written anew meanwhile.

local call, wrong = redis.call, {}
for at = 2, #ARGV, 4 do
  local scored = call('HGET', KEYS[1], ARGV[at]) == ARGV[at + 1]
  local stands = tonumber(call('ZSCORE', KEYS[2], ARGV[at + 2]) or 'x') == tonumber(ARGV[at + 3])
  if scored ~= stands then
    wrong[#wrong + 1] = (at - 2) / 4
    if ARGV[1] == 'mend' then
      if scored then
        call('ZADD', KEYS[2], ARGV[at + 3], ARGV[at + 2])
      else
        call('ZREM', KEYS[2], ARGV[at + 2])
      end
    end
  end
end
return wrong
