-- Numbers of sequences, which a commit takes, in the words that wait for them: hash field place c|w|t word at d|x. The place is counted
-- from 0, behind the last number that was given; nobody else is given any until this commit is over, in whatever way. The word is one
-- of the checks, of the changes or of what is told, which begin at `checks`, `changes` and `tells`; `at` is how much of it comes
-- before the number, which is written as usual (d) or with sixteen digits (x).

local function fill(base, from, checks, changes, tells)
  local sections = {c = checks, w = changes, t = tells}
  for at = from, checks - 1, 7 do
    local last = call('HGET', KEYS[base + tonumber(ARGV[at])], ARGV[at + 1]) or '0'
    local number = tonumber(last) + 1 + tonumber(ARGV[at + 2])
    local digits
    if ARGV[at + 6] == 'x' then
      digits = string.format('%08x%08x', math.floor(number / 4294967296), number % 4294967296)
    else
      digits = string.format('%.0f', number)
    end
    local word, before = sections[ARGV[at + 3]] + tonumber(ARGV[at + 4]), tonumber(ARGV[at + 5])
    ARGV[word] = string.sub(ARGV[word], 1, before) .. digits .. string.sub(ARGV[word], before + 1)
  end
end

