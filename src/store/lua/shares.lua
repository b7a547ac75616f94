-- Strict shares: of a limit of the queue no tenant gets more than an equal part, whether the others use theirs or not.
-- What the queue's own limit counts is one thing; here each tenant counts its part of it. Of a bucket the part is a
-- bucket that is so many times slower; of a window it is a whole number, and what is left over by rounding goes to
-- whoever asks first, one to a tenant.
local bucket = require "bucket"
local meters = require "meters"
local window = require "window"

local shares = {}

local max, min, floor = math.max, math.min, math.floor

-- How long a tenant that has used its part waits until it asks whether that has grown: a second, and where they are
-- many, so long that a thousand ask in a second.
local SECOND, FOR_EACH = 1000000, 1000

-- Whoever stands in line or is parked. Read when a script begins; who comes and goes in it counts from the next.
function shares.active(q)
  local active = 0
  for _, key in pairs(q.keys.ready) do
    active = active + redis.call("ZCARD", key)
  end
  return max(1, active + redis.call("ZCARD", q.keys.parked) + redis.call("ZCARD", q.keys.unparking))
end

local function field_of(rule)
  return meters.field("share:" .. rule.name, rule.kind)
end

-- At least one in a window, however many they are: the queue's own limit sees to the sum.
local function open_bucket(q, tenant, whole)
  local rule, active = whole.rule, q.limits.active
  local burst = max(1, floor(rule.burst / active))
  local per_window = rule.count - rule.burst + 1
  local part = {
    name = rule.name, kind = "bucket", count = per_window - 1 + burst, window = rule.window, burst = burst,
    jitter = rule.jitter, is_share = true,
  }
  local pace = (whole.interval_before or whole.interval) / bucket.interval(rule, whole.jitter)
  local share = max(1 / active, 1 / per_window) / pace
  local state = bucket.open(part, tenant.fields[field_of(rule)], whole.jitter, q, q.now, share)
  state.field = field_of(rule)
  return state
end

local of_window = {}

-- The state is a window's. `whole` is the queue's, which counts how many of the left over are given.
local function open_window(q, tenant, whole)
  local rule, active = whole.rule, q.limits.active
  local part = { name = rule.name, kind = "window", count = max(1, floor(rule.count / active)), is_share = true }
  part.window, part.offset, part.zones, part.jitter = rule.window, rule.offset, rule.zones, rule.jitter
  local state = window.open(part, tenant.fields[field_of(rule)], whole.jitter, q, q.now)
  state.meter, state.whole, state.field = of_window, whole, field_of(rule)
  state.active, state.left_over = active, max(0, rule.count - active * part.count)
  return state
end

local function is_extra_left(state)
  return state.used <= state.rule.count and state.whole.extra < state.left_over
end

function of_window.available(state)
  if window.available(state.whole) == 0 then
    return 0
  end
  return max(0, state.rule.count + (is_extra_left(state) and 1 or 0) - state.used)
end

-- Others may leave, and its part grow, long before the window ends. A job that costs more than the part gets all of it.
function of_window.instant(state, permits)
  if state.used == 0 or of_window.available(state) >= permits then
    return 0
  end
  return min(state.stop, state.now + max(SECOND, state.active * FOR_EACH))
end

function of_window.charge(state, permits, fence)
  local had = state.used
  window.charge(state, permits, fence)
  if state.used > state.rule.count and had <= state.rule.count and state.whole.extra < state.left_over then
    state.whole.extra, state.whole.changed = state.whole.extra + 1, true
  end
end

of_window.refund = window.refund
of_window.lasts_until = window.lasts_until
of_window.stored = window.stored
of_window.usage = window.usage
of_window.batch = window.batch

-- Of every limit of the queue that has a rate, the tenant's part, at the end of `states`.
function shares.open(q, tenant, states)
  for _, whole in ipairs(q.limits.queue) do
    if whole.rule.kind == "bucket" then
      states[#states + 1] = open_bucket(q, tenant, whole)
    elseif whole.rule.kind == "window" then
      states[#states + 1] = open_window(q, tenant, whole)
    end
  end
end

return shares
