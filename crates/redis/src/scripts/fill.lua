-- Numbers of sequences, which a commit takes, in the words that wait for them: hash field place c|w word at. The place is counted
-- from 0, behind the last number that was given; nobody else is given any until this commit is over, in whatever way. The word is one
-- of the checks or of the changes, which begin at `checks` and `changes`, and `at` is how much of it comes before the number.

local function fill(base, from, checks, changes)
  for at = from, checks - 1, 6 do
    local last = call('HGET', KEYS[base + tonumber(ARGV[at])], ARGV[at + 1]) or '0'
    local number = string.format('%.0f', tonumber(last) + 1 + tonumber(ARGV[at + 2]))
    local word = (ARGV[at + 3] == 'c' and checks or changes) + tonumber(ARGV[at + 4])
    local before = tonumber(ARGV[at + 5])
    ARGV[word] = string.sub(ARGV[word], 1, before) .. number .. string.sub(ARGV[word], before + 1)
  end
end

