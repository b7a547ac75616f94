-- A bucket by the generic cell rate algorithm: one number, the theoretical arrival time (`tat`), says everything.
-- One permit every `interval`; `burst` of them may be granted at once. All times in microseconds.
--
-- A rule is what the limit's definition says: { name, kind, count, window, burst, jitter }. The jitter is what the
-- limit measures of the way to the upstream; it grows with stale grants, so the interval is computed here.
local bucket = {}

local max, min, floor, ceil = math.max, math.min, math.floor, math.ceil

-- After a restart short windows stay closed for one window; of longer ones this much is taken as used.
local RESTART_LOSS = 2000000
local SHORT_WINDOW = 60000000

-- A thousand tenants under one rule ask for the same.
local function interval_of(rule, jitter)
  if rule.paced_for ~= jitter then
    rule.paced_for, rule.interval = jitter, ceil((rule.window + jitter) / (rule.count - rule.burst + 1))
  end
  return rule.interval
end

bucket.interval = interval_of

-- The state is "tat:fence:restarts": who was granted last, and the restarts it has been through. `share` is what an
-- upstream that pushed back has left of the rate.
function bucket.open(rule, stored, jitter, queue, now, share)
  local state = {
    meter = bucket, rule = rule, jitter = jitter, interval = interval_of(rule, jitter), now = now, known = nil,
    tat = 0, fence = 0, closed_until = 0, changed = false,
  }
  if share < 1 then
    state.interval = ceil(state.interval / share)
  end
  local restarts
  if stored then
    local tat, fence, seen = string.match(stored, "^(%d+):(%d+):(%d+)$")
    state.tat, state.fence, restarts = tonumber(tat), tonumber(fence), tonumber(seen)
    -- Further ahead than these parameters can put it (twice: the jitter may have been halved): it was charged under
    -- a slower rule. One permit is free now, the others come at the new pace.
    local most = queue.has_costs and rule.count or rule.burst
    if state.tat > now + 2 * most * state.interval then
      state.tat = now + (rule.burst - 1) * state.interval
    end
  end
  if queue.restarts > 0 then
    if rule.window <= SHORT_WINDOW then
      state.closed_until = queue.restarted_at + rule.window + jitter
    elseif restarts == nil then
      -- The count is gone: as if a burst had just been spent.
      state.tat = max(state.tat, queue.restarted_at + (rule.burst - 1) * state.interval + RESTART_LOSS)
    elseif restarts < queue.restarts then
      state.tat = max(state.tat, queue.restarted_at) + RESTART_LOSS
    end
  end
  return state
end

-- An upstream has just pushed back: the next permits come at this share of the rate. What is used of the burst stays
-- used: at the longer interval the same time would be fewer permits.
function bucket.slow(state, share)
  local interval = ceil(interval_of(state.rule, state.jitter) / share)
  if interval ~= state.interval and state.tat > state.now then
    state.tat = state.now + ceil((state.tat - state.now) * interval / state.interval)
    state.changed = true
  end
  state.interval = interval
end

-- How many permits could be granted now.
function bucket.available(state)
  local now = state.now
  if state.closed_until > now then
    return 0
  end
  return max(0, floor(state.rule.burst - (max(state.tat, now) - now) / state.interval))
end

-- When `permits` could be granted at once: more than the burst, when it has saved up for them; more than the limit (it
-- was lowered since), when it has saved up for all of that.
function bucket.instant(state, permits)
  local needed = min(permits, state.rule.count)
  return max(state.closed_until, ceil(state.tat - (state.rule.burst - needed) * state.interval))
end

function bucket.charge(state, permits, fence)
  state.tat = max(state.tat, state.now) + permits * state.interval
  state.fence = fence
  state.changed = true
end

-- Gives unused permits back. Only the last grant can be undone without letting more through than the promise: permits
-- granted since then were spaced by the ones now coming back. Others are forfeited; a rate can lose by it, never gain.
function bucket.refund(state, permits, fence)
  if state.fence == fence then
    state.tat = state.tat - permits * state.interval
    state.changed = true
  end
end

-- Until when the state says something.
function bucket.lasts_until(state)
  return state.tat
end

-- Permits of its burst that are not back yet, and when all are.
function bucket.usage(state)
  local used = min(state.rule.burst, ceil(max(0, state.tat - state.now) / state.interval))
  return used, max(0, state.tat, state.closed_until)
end

-- How many are worth waiting for.
function bucket.batch(state)
  return floor(state.rule.burst / 2)
end

function bucket.stored(state, queue)
  return string.format("%d:%d:%d", state.tat, state.fence, queue.restarts)
end

return bucket
