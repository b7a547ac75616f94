-- How limits stand, for whoever looks at them: one row each, in the order in which a claim asks them.
local bucket = require "bucket"
local limits = require "limits"
local queue = require "queue"

local readings = {}

-- {scope, name, kind, limit, window µs, burst, jitter µs, available, used, next grant in µs, full again in µs}
local function row(q, scope, state)
  local rule, now = state.rule, q.now
  if state.holder then
    local used = state.holder[state.field]
    return { scope, rule.name, rule.kind, rule.max, 0, 0, 0, math.max(0, rule.max - used), used, 0, 0 }
  end
  local left = bucket.available(state)
  local opens = left > 0 and 0 or bucket.instant(state, 1) - now
  local used = math.min(rule.burst, math.ceil(math.max(0, state.tat - now) / state.interval))
  local full = math.max(0, state.tat - now, state.closed_until - now)
  return { scope, rule.name, rule.kind, rule.count, rule.window, rule.burst, state.jitter, left, used, opens, full }
end

local function add(q, rows, scope, states)
  for _, state in ipairs(states) do
    rows[#rows + 1] = row(q, scope, state)
  end
end

-- Those of the queue and its levels, and of a tenant where one is given. The limits are open.
function readings.all(q, tenant)
  local rows = {}
  add(q, rows, "queue", q.limits.queue)
  for _, level in ipairs(queue.LEVELS) do
    add(q, rows, level, q.limits[level])
  end
  if tenant then
    add(q, rows, "tenant", limits.of_tenant(q, tenant))
  end
  return rows
end

return readings
