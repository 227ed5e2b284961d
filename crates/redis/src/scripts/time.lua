-- The store's time, in microseconds. It is the clock of one node, but never runs backwards and never stops: what was last
-- written down of it is `clock time bound node`, and it goes on from there. Where it is not what the node's clock says
-- (another node has taken over, or the clock was set back) it is brought there slowly, by a tenth. More than a day
-- apart is a clock that was wrong: then the node's own is taken.
--
-- No time was given that is later than the bound.

local day = 86400e6

local function clock_now()
  local now = redis.call('TIME')
  return now[1] * 1e6 + now[2]
end

-- Which node this is, as far as it may be asked: without a Cluster there is one.
local function node_name(cluster)
  local name = cluster == '1' and redis.pcall('CLUSTER', 'MYID')
  return type(name) == 'string' and name or '-'
end

-- The time; how pressing it is to write it down (0 not, 1 soon, 2 before it is used); and the node's clock.
local function store_time(kept, stamp, node)
  local clock, stamp = clock_now(), tonumber(stamp or 0)
  local at, time, bound, home = string.match(kept or '', '^(%d+) (%d+) (%d+) (%S+)$')
  local now, pressing = clock, 2
  if at then
    at, time, bound = tonumber(at), tonumber(time), tonumber(bound)
    local passed, ahead = clock - at, time - at
    if home ~= node or passed < 0 then
      now = math.max(bound, home ~= node and clock or 0)
    else
      local slower = math.min(math.abs(ahead), math.floor(passed / 10))
      now = time + passed - (ahead < 0 and -slower or slower)
      pressing = now > bound - 1e6 and 1 or 0
    end
    if math.abs(now - clock) > day then now, pressing = clock, 2 end
  end
  -- Later than everything that was ever committed.
  if stamp >= now and stamp < clock + day then
    if stamp > now + 1e6 then pressing = 2 end
    now = stamp + 1
  end
  return now, pressing, clock, bound or 0, home
end

