-- A tenant's strict share of a window that the queue stands under: a whole number of its permits. What is left over by
-- rounding goes to whoever asks first, one to a tenant.
local window = require "window"

local window_share = {}

local max, min, floor = math.max, math.min, math.floor

-- How long a tenant that has used its part waits until it asks whether that has grown: a second, and where they are
-- many, so long that a thousand ask in a second.
local SECOND, FOR_EACH = 1000000, 1000

-- The state is a window's. `whole` is the queue's, which counts how many of the left over are given.
function window_share.open(q, stored, field, whole)
  local rule, active = whole.rule, q.limits.active
  local part = { name = rule.name, kind = "window", count = max(1, floor(rule.count / active)), is_share = true }
  part.window, part.offset, part.zones, part.jitter = rule.window, rule.offset, rule.zones, rule.jitter
  local state = window.open(part, stored, whole.jitter, q, q.now)
  state.meter, state.whole, state.field = window_share, whole, field
  state.active, state.left_over = active, max(0, rule.count - active * part.count)
  return state
end

local function is_extra_left(state)
  return state.used <= state.rule.count and state.whole.extra < state.left_over
end

function window_share.available(state)
  if window.available(state.whole) == 0 then
    return 0
  end
  return max(0, state.rule.count + (is_extra_left(state) and 1 or 0) - state.used)
end

-- Also for parts of other kinds.
function window_share.asks_again(state)
  return state.now + max(SECOND, state.active * FOR_EACH)
end

-- Others may leave, and its part grow, long before the window ends. A job that costs more than the part gets all of it.
function window_share.instant(state, permits)
  if state.used == 0 or window_share.available(state) >= permits then
    return 0
  end
  return min(state.stop, window_share.asks_again(state))
end

function window_share.charge(state, permits, fence)
  local had = state.used
  window.charge(state, permits, fence)
  if state.used > state.rule.count and had <= state.rule.count and state.whole.extra < state.left_over then
    state.whole.extra, state.whole.changed = state.whole.extra + 1, true
  end
end

-- What was left over by rounding is so again when the permit above the part comes back.
function window_share.refund(state, permits, fence)
  local had, whole = state.used, state.whole
  window.refund(state, permits, fence)
  if had > state.rule.count and state.used <= state.rule.count and whole.extra > 0 then
    whole.extra, whole.changed = whole.extra - 1, true
  end
end

window_share.lasts_until = window.lasts_until
window_share.stored = window.stored
window_share.usage = window.usage
window_share.batch = window.batch

return window_share
