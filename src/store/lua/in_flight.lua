-- Jobs in flight under limits that queues share: of each queue the group keeps a copy of its own count, and the sum.
local in_flight = {}

-- What the queue has in flight under a shared limit, by the scopes that it is attached to there.
function in_flight.own(q, shared)
  local sum = 0
  for _, scope in ipairs(shared.scopes) do
    sum = sum + (scope == "queue" and q or q.at[scope]).running
  end
  return sum
end

-- For scripts that do not open the limits.
function in_flight.set(limits_key, limit, queue, count)
  local field = limit .. "/running"
  local own = field .. "/" .. queue
  local sum, before = unpack(redis.call("HMGET", limits_key, field, own))
  local others = math.max(0, tonumber(sum or 0) - tonumber(before or 0))
  redis.call("HSET", limits_key, field, string.format("%d", others + count), own, string.format("%d", count))
end

-- Limits that a queue shares by the settings `before`, and by those `after` no longer.
function in_flight.left(before, after)
  local stays, left = {}, {}
  for _, shared in ipairs(after.shared or {}) do
    stays[shared.limit] = true
  end
  for _, shared in ipairs(before.shared or {}) do
    if not stays[shared.limit] then
      left[#left + 1] = shared.limit
    end
  end
  return left
end

return in_flight
