-- Queues of a group whose leases have all run out: their processes are gone, and with them whoever would take the jobs
-- back. What these have in flight under a shared limit counts no longer; whoever comes back writes the count anew.
local stranded = {}

local EVERY = 5000000 -- µs between two looks at the queues under a limit
local LAST = "255" -- of the queues looked at

-- `looked_at` is when somebody looked last, as it is stored.
function stranded.is_due(looked_at, now)
  return not looked_at or math.abs(now - tonumber(looked_at)) >= EVERY
end

-- The names of such queues but for the own one, and how many jobs they have in flight under the limit.
function stranded.find(q, limit, own)
  local names, fields = {}, {}
  for _, name in ipairs(redis.call("ZRANGE", q.keys.group_queues, "0", LAST)) do
    if name ~= own then
      names[#names + 1], fields[#fields + 1] = name, limit .. "/running/" .. name
    end
  end
  local counts = names[1] and redis.call("HMGET", q.keys.group_limits, unpack(fields)) or {}
  local tag, found, sum = string.match(q.keys.group_queues, "^(.*})"), {}, 0
  for i, name in ipairs(names) do
    local count = tonumber(counts[i] or 0)
    if count > 0 then
      local last = redis.call("ZREVRANGE", tag .. ":" .. name .. ":leases", "0", "0", "WITHSCORES")
      if not last[2] or tonumber(last[2]) <= q.now then
        found[#found + 1], sum = name, sum + count
      end
    end
  end
  return found, sum
end

return stranded
