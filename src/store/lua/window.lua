-- A window of the calendar: fixed and aligned, so many permits in each. All times in microseconds.
--
-- A rule is what the limit's definition says: { name, kind, count, window, offset, jitter, zones }. Zones are pairs of
-- an instant and what the zone adds to UTC from then on, in seconds: scripts know no zones.
local window = {}

local max, min, ceil = math.max, math.min, math.ceil

local SECOND = 1000000
local HOUR = 3600 * SECOND
local DAY = 24 * HOUR
-- After a restart short windows stay closed for one window; of longer ones this much, at full rate, is taken as used.
local RESTART_LOSS = 2 * SECOND
local SHORT_WINDOW = 60 * SECOND

-- What the zone adds to UTC, and since when.
local function zone_offset(zones, at)
  local offset, since = 0, 0
  for i = 1, #zones, 2 do
    if zones[i] * SECOND > at then
      break
    end
    since, offset = zones[i] * SECOND, zones[i + 1] * SECOND
  end
  return offset, since
end

-- When the clock on the wall first shows it; what it never shows is where it jumps over that.
local function from_wall(zones, wall)
  local before, after = zone_offset(zones, wall - DAY), zone_offset(zones, wall + DAY)
  if zone_offset(zones, wall - before) == before then
    return wall - before
  elseif zone_offset(zones, wall - after) == after then
    return wall - after
  end
  local _, jumps_at = zone_offset(zones, wall - before)
  return jumps_at
end

-- The first instant of the window and the first after it.
local function bounds(rule, now)
  local zones = rule.zones
  if not zones then
    local start = now - (now - rule.offset) % rule.window
    return start, start + rule.window
  end
  local wall = now + zone_offset(zones, now)
  local into = (wall - rule.offset) % rule.window
  if rule.window <= HOUR then
    return now - into, now - into + rule.window
  end
  -- A day on which the clocks change has 23 or 25 hours.
  local start, stop = from_wall(zones, wall - into), from_wall(zones, wall - into + rule.window)
  if stop <= now then
    -- Clocks were put back behind the end of a window: what they show again belongs to the next.
    return stop, from_wall(zones, wall - into + 2 * rule.window)
  end
  return start, stop
end

-- What the store has forgotten. `restarts` are those that the stored count has been through, 0 without one: a store
-- that has kept the queue has kept its counts, so that there was nothing to count. Only where it had lost the queue
-- itself is that unknown: then as much as has passed of the window counts as used, beside what was granted until a
-- process came back that knew the queue.
local function count_restarts(state, restarts, queue)
  local rule, lost_at = state.rule, queue.lost_at
  if lost_at and lost_at >= state.start then
    state.is_estimated = true
    if restarts == 0 then
      state.used = state.used + ceil(rule.count * (lost_at - state.start) / (state.stop - state.start))
      restarts = 1 -- The loss was the first.
    end
  end
  if queue.restarted_at >= state.start and restarts < queue.restarts then
    state.used = state.used + ceil(RESTART_LOSS * rule.count / rule.window)
  end
end

-- The state is "last grant:used:restarts", and behind that how many tenants got one more than their strict share, if
-- any did. What was used counts while the last grant is of the window of now, also when the rule has another length by
-- then.
function window.open(rule, stored, jitter, queue, now)
  -- A thousand tenants under one rule ask for the same.
  if rule.bounds_at ~= now then
    rule.bounds_at = now
    rule.start, rule.stop = bounds(rule, now)
  end
  local state = {
    meter = window, rule = rule, jitter = jitter, now = now, start = rule.start, stop = rule.stop, known = nil,
    last = 0, used = 0, extra = 0, closed_until = 0, changed = false, is_estimated = false,
  }
  local restarts = 0
  if stored then
    local last, used, seen, extra = string.match(stored, "^(%d+):(%d+):(%d+):?(%d*)$")
    restarts = tonumber(seen)
    if tonumber(last) >= state.start then
      state.last, state.used, state.extra = tonumber(last), tonumber(used), tonumber(extra) or 0
    end
  end
  if queue.restarts > 0 then
    if rule.window <= SHORT_WINDOW then
      state.closed_until = queue.restarted_at + rule.window + jitter
    else
      count_restarts(state, restarts, queue)
    end
  end
  return state
end

function window.available(state)
  if state.closed_until > state.now or state.now >= state.stop - state.jitter then
    return 0
  end
  return max(0, state.rule.count - state.used)
end

-- When `permits` could be granted at once: more than all of it (the limit was lowered since), in a window of their own.
function window.instant(state, permits)
  local needed = min(permits, state.rule.count)
  local has_room = state.now < state.stop - state.jitter and state.rule.count - state.used >= needed
  return max(state.closed_until, has_room and 0 or state.stop)
end

function window.charge(state, permits, _)
  state.used, state.last = state.used + permits, state.now
  state.changed = true
end

-- A fence is no smaller than the instant of its claim: what was granted in this window comes back to it.
function window.refund(state, permits, fence)
  if fence >= state.start and state.used > 0 then
    -- What a restart took as used had no last grant.
    state.used, state.last = max(0, state.used - permits), max(state.last, state.start)
    state.changed = true
  end
end

-- Until when the state says something.
function window.lasts_until(state)
  return state.stop
end

function window.stored(state, queue)
  local text = string.format("%d:%d:%d", state.last, state.used, queue.restarts)
  return state.extra > 0 and text .. string.format(":%d", state.extra) or text
end

-- Used, and when nothing of it is used any more.
function window.usage(state)
  return state.used, state.used > 0 and state.stop or 0
end

-- How many are worth waiting for: what there is comes all at once.
function window.batch()
  return 1
end

return window
