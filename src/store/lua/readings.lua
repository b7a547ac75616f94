-- How limits stand, for whoever looks at them: one row each, in the order in which a claim asks them.
local limits = require "limits"
local queue = require "queue"
local time = require "time"
local pushback = require "pushback"

local readings = {}

-- What the limit's own definition, or for a quota its upstream, allows; 0: unknown.
local function most(state)
  local rule = state.rule
  return rule.max or rule.count or state.meter.most(state)
end

-- Whether it grants a job of this cost now.
function readings.grants(state, cost)
  local meter = state.meter
  return meter.available(state) > 0 and (cost == 1 or meter.instant(state, cost) <= state.now)
end

-- {scope, name, kind, limit, window µs, burst, jitter µs, available, used, grants that cost in µs (-1: nobody knows),
-- nothing used any more in µs, share of its rate in thousandths, closed by its upstream for µs, 1 if what is used was
-- not all counted, jitter µs as defined}
local function row(q, scope, state, cost)
  local rule, now, meter = state.rule, q.now, state.meter
  local left = meter.available(state)
  local opens = readings.grants(state, cost) and 0 or meter.instant(state, cost)
  local used, unused_at = meter.usage(state)
  local share, pushed_until = 1000, 0
  if state.pushed then
    share, pushed_until = math.floor(pushback.share(state.pushed) * 1000 + 0.5), state.pushed.closed_until
  end
  return {
    scope, rule.name, rule.kind, most(state), rule.window or 0, rule.burst or 0, state.jitter or 0, left, used,
    opens >= time.NEVER and -1 or math.max(0, opens - now), math.max(0, unused_at - now), share,
    math.max(0, pushed_until - now), state.is_estimated and 1 or 0, rule.jitter or 0,
  }
end

local function add(q, rows, scope, states, cost)
  for _, state in ipairs(states) do
    if not state.rule.is_share then
      rows[#rows + 1] = row(q, scope, state, cost)
    end
  end
end

-- Those of the queue and its levels, and of a tenant where one is given; for a job of this cost. The limits are open.
function readings.all(q, tenant, cost)
  local rows = {}
  add(q, rows, "queue", q.limits.queue, cost)
  for _, level in ipairs(queue.LEVELS) do
    add(q, rows, level, q.limits[level], cost)
  end
  if tenant then
    add(q, rows, "tenant", limits.of_tenant(q, tenant), cost)
  end
  return rows
end

return readings
