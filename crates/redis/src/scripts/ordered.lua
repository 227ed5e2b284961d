-- Rows against their order, as of one moment; or the order put right.
--
-- KEYS  hash order
-- ARGV  look|mend, then field text element score stands of each: the row as it was read (empty if it is not there), and
--       whether it stands at this place (1 or 0).
--       Answers the numbers of those that are not in the order as they should be, and of those that were written meanwhile.

local call, wrong, moved = redis.call, {}, {}
for at = 2, #ARGV, 5 do
  local number = (at - 2) / 5
  local should = ARGV[at + 4] == '1'
  local stands = tonumber(call('ZSCORE', KEYS[2], ARGV[at + 2]) or 'x') == tonumber(ARGV[at + 3])
  if (call('HGET', KEYS[1], ARGV[at]) or '') ~= ARGV[at + 1] then
    moved[#moved + 1] = number
  elseif should ~= stands then
    wrong[#wrong + 1] = number
    if ARGV[1] == 'mend' then
      if should then
        call('ZADD', KEYS[2], ARGV[at + 3], ARGV[at + 2])
      else
        call('ZREM', KEYS[2], ARGV[at + 2])
      end
    end
  end
end
return {wrong, moved}
