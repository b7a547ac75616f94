-- What a backlog means in time: how fast a tenant is served, how long a job that was pushed back waits, and the
-- statistics of both. Speeds are jobs a second, in hundredths.
local pace = require "pace"
local queue = require "queue"
local limits = require "limits"
local tenants = require "tenants"

local congestion = {}

local floor, ceil, min, max, huge = math.floor, math.ceil, math.min, math.max, math.huge
local SECOND = 1000000
local MEASURED_OVER = 2 * pace.SLOT

-- Of stores that were registered before there was any.
local DEFAULTS = {
  congestion = true, base_backoff = SECOND, max_backoff = 120 * SECOND, snapshot = 10 * SECOND,
  keep_history = 3600 * SECOND,
}

local function setting(q, name)
  local value = q.settings[name]
  if value == nil then
    return DEFAULTS[name]
  end
  return value
end

local function hundredths(speed)
  return floor(speed * 100 + 0.5) / 100
end

-- Starts a second over the last ten: two slots, and of the one before them what is not older. `starts` are those of the
-- slot it was last looked at.
local function measured(of, now, starts)
  local present, before, earlier = pace.slots(of, now, starts)
  local rest = 1 - (now % pace.SLOT) / pace.SLOT
  return (present + before + earlier * rest) * SECOND / MEASURED_OVER
end

-- A window slows nobody down who finds room in it. What it has none for starts when it begins anew, or later.
local function window_rate(state, waiting)
  local rule = state.rule
  local beyond = waiting - max(0, rule.count - state.used)
  if beyond <= 0 then
    return huge
  end
  return waiting * SECOND / (state.stop - state.now + (ceil(beyond / rule.count) - 1) * rule.window)
end

-- What limits let start in a second of so many that wait: the least of them; those without a rate say nothing.
local function rate_of(states, waiting)
  local least = huge
  for _, state in ipairs(states) do
    local rule = state.rule
    if rule.kind == "bucket" and not rule.is_share then
      least = min(least, rule.count * SECOND / rule.window)
    elseif rule.kind == "window" and not rule.is_share then
      least = min(least, window_rate(state, waiting))
    end
  end
  return least
end

local function is_measured(of, now)
  return of.active_since > 0 and now - of.active_since >= MEASURED_OVER
end

-- Until it is measured, what limits let expect; without any, what has started so far. Answers also whether it was
-- measured.
local function speed_of(of, now, starts, rate)
  if is_measured(of, now) then
    return hundredths(measured(of, now, starts)), true
  end
  if rate == huge then
    rate = measured(of, now, starts) * MEASURED_OVER / max(SECOND, now - of.active_since)
  end
  return hundredths(max(1, rate)), false
end

-- One answer for all tenants that a script looks at. Where limits are not open, there are none.
local function queue_rate(q)
  if q.rate_for ~= q.waiting then
    q.rate_for, q.rate = q.waiting, q.limits and rate_of(q.limits.queue, q.waiting) or huge
  end
  return q.rate
end

local function own_rate(q, tenant)
  if not q.limits then
    return huge
  end
  return rate_of(limits.of_tenant(q, tenant), tenant.waiting)
end

-- The tenant's share of what the queue may do: by weight among all who are in line or parked. In line on several
-- levels, it is still one.
local function share_of(q, tenant)
  local weights = q.at.high.weights + q.at.normal.weights + q.at.low.weights + q.weights_parked
  local weight, lines = tenant.weight * 1000, 0
  for _, at in pairs(tenant.at) do
    lines = lines + (at.present and 1 or 0)
  end
  return weight / max(weights - max(0, lines - 1) * weight, weight)
end

function congestion.speed(q, tenant)
  local own, of_queue = own_rate(q, tenant), queue_rate(q)
  local of = pace.open(tenant)
  local starts = pace.received(tenant) - of.received
  return speed_of(of, q.now, starts, min(own, of_queue * share_of(q, tenant)))
end

function congestion.queue_speed(q)
  return speed_of(q, q.now, q.starts, queue_rate(q))
end

-- In µs. A speed of 0 counts as 1.
function congestion.backoff(q, waiting, speed)
  local base = setting(q, "base_backoff")
  if not setting(q, "congestion") then
    return base
  end
  return min(setting(q, "max_backoff"), base + floor(waiting / (speed > 0 and speed or 1)) * SECOND)
end

-- By the first of these that it does not exceed, in seconds. 119: the default maximum is 120, and how often it is
-- reached is worth knowing.
local COUNTED_UP_TO = { 1, 2, 3, 5, 10, 20, 30, 60, 119, 300, 900, 3600 }

local function count_backoff(q, backoff)
  local bound = "more"
  for _, seconds in ipairs(COUNTED_UP_TO) do
    if backoff <= seconds * SECOND then
      bound = seconds
      break
    end
  end
  queue.count(q, "backoff:" .. bound, 1)
  queue.count(q, "backoff_ms", floor(backoff / 1000))
end

-- How long a job waits that the upstream pushed back without saying for how long. Counted as such.
function congestion.back_off(q, tenant)
  local backoff = congestion.backoff(q, tenant.waiting, (congestion.speed(q, tenant)))
  count_backoff(q, backoff)
  return backoff
end

-- Jobs that have ended since the statistics began. `running` are the tenant's.
function congestion.finished(tenant, running)
  return max(0, pace.received(tenant) - running - pace.open(tenant).uncounted)
end

-- The statistics begin anew. How fast it is stays as it was measured.
function congestion.reset(tenant, running)
  local of = pace.open(tenant)
  tenant.throttled, of.backoff, of.uncounted = 0, 0, pace.received(tenant) - running
end

-- An action has ended: with nothing else to do for its tenant, its statistics are history.
function congestion.end_action(q, action)
  -- One that is not known any more has no statistics, and is not made for want of any.
  local is_loaded = q.tenants and q.tenants.by_name[action.tenant]
  if not is_loaded and redis.call("EXISTS", q.keys.prefix .. "tenant:" .. action.tenant) == 0 then
    return
  end
  local tenant = tenants.load(q, action.tenant)
  local running = tenants.running(q, tenant)
  if tenant.waiting + tenant.delayed == 0 and running == action.running then
    congestion.reset(tenant, running)
  end
end

congestion.setting = setting

return congestion
