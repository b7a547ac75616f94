-- A bucket by the generic cell rate algorithm: one number, the theoretical arrival time (`tat`), says everything.
-- One permit every `interval`; `burst` of them may be granted at once. All times in microseconds.
--
-- A rule is what the limit's definition says: { name, kind, count, window, burst, jitter }. The jitter is what the
-- limit measures of the way to the upstream; it grows with stale grants, so the interval is computed here.
--
-- Nobody asks at every instant at which a permit comes free. What came free within the bucket's reach can still be
-- granted: as if it had been asked for then, and been on its way since. The jitter covers ways that differ by so much,
-- and the grant keeps for that much less. (decision 0040)
local bucket = {}

local max, min, floor, ceil = math.max, math.min, math.floor, math.ceil
local match, format = string.match, string.format

-- After a restart short windows stay closed for one window; of longer ones this much is taken as used.
local RESTART_LOSS = 2000000
local SHORT_WINDOW = 60000000

-- Of the jitter: how late a permit can be granted.
local REACH = 0.05

-- A thousand tenants under one rule ask for the same.
local function interval_of(rule, jitter)
  if rule.paced_for ~= jitter then
    rule.paced_for, rule.interval = jitter, ceil((rule.window + jitter) / (rule.count - rule.burst + 1))
    rule.reach = floor(jitter * REACH)
  end
  return rule.interval
end

bucket.interval = interval_of

-- Most are granted something before anybody asks who was granted last: until then the state keeps what is stored.
local function fence_of(state)
  if type(state.fence) == "string" then
    state.fence = tonumber(match(state.fence, ":(%d+):"))
  end
  return state.fence
end

-- 0 where nobody was.
bucket.granted_last = fence_of

-- The state is "tat:fence:restarts": who was granted last, and the restarts it has been through. `share` is what an
-- upstream that pushed back has left of the rate.
function bucket.open(rule, stored, jitter, queue, now, share)
  local state = {
    meter = bucket, rule = rule, jitter = jitter, interval = interval_of(rule, jitter), now = now, known = nil,
    tat = 0, fence = 0, closed_until = 0, changed = false, reach = rule.reach, taken = 0,
  }
  if share < 1 then
    state.interval = ceil(state.interval / share)
  end
  if stored then
    state.tat, state.fence = tonumber(match(stored, "^(%d+):")), stored
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
    else
      local restarts = stored and tonumber(match(stored, "(%d+)$")) or 0
      if restarts == 0 and queue.lost_at then
        -- The store had lost the queue, and the count with it: as if a burst had been spent just then. That was the
        -- first restart; processes that did not know the queue may have been granted something before it.
        state.tat = max(state.tat, queue.lost_at + (rule.burst - 1) * state.interval + RESTART_LOSS)
        restarts = 1
      end
      if restarts < queue.restarts then
        state.tat = max(state.tat, queue.restarted_at) + RESTART_LOSS
      end
    end
  end
  return state
end

-- An upstream has just pushed back: the next permits come at this share of the rate. What is used of the burst stays
-- used: at the longer interval the same time would be fewer permits. Strict shares go by the interval from before
-- until the script ends, or those opened by then would differ from the others.
function bucket.slow(state, share)
  state.interval_before = state.interval_before or state.interval
  local interval = ceil(interval_of(state.rule, state.jitter) / share)
  if interval ~= state.interval and state.tat > state.now then
    state.tat = state.now + ceil((state.tat - state.now) * interval / state.interval)
    state.changed = true
  end
  state.interval = interval
end

-- How many permits could be granted now. Every turn asks: a comparison costs less than a call of `max`.
function bucket.available(state)
  local now, taken = state.now, state.taken
  if state.closed_until > now then
    return 0
  end
  -- Where it would stand if nothing had been granted by this script.
  local ahead, reach = (taken > 0 and state.tat_before or state.tat) - now, state.reach
  if ahead < -reach then
    ahead = -reach
  end
  local free = floor(state.rule.burst - ahead / state.interval) - taken
  return free > 0 and free or 0
end

-- When `permits` could be granted at once: more than the burst, when it has saved up for them; more than the limit (it
-- was lowered since), when it has saved up for all of that.
function bucket.instant(state, permits)
  local rule, interval, taken = state.rule, state.interval, state.taken
  local burst, needed = rule.burst, permits < rule.count and permits or rule.count
  local instant = state.tat - (burst - needed) * interval
  if taken > 0 then
    local over = (taken + needed - burst) * interval
    if over <= state.reach and state.tat_before + over < instant then
      instant = state.tat_before + over
    end
  end
  return max(state.closed_until, ceil(instant))
end

-- All that one script grants counts as asked for at once. Less than a burst: now. Else when the last permit before came
-- free, if that is within reach: nothing is lost between two who ask. After a rest it is as late as need be, or, for
-- what was saved up for, now.
function bucket.charge(state, permits, fence)
  local taken, interval, now, before = state.taken, state.interval, state.now, state.tat_before
  if taken == 0 then
    before = state.tat
    state.tat_before = before
  end
  taken = taken + permits
  local over, from = (taken - state.rule.burst) * interval, now
  if over >= 0 then
    local rested, reach = now - before, state.reach
    from = now - (rested <= reach and rested or over <= reach and over or 0)
  end
  if from < before then
    from = before
  end
  state.taken, state.tat, state.fence, state.changed = taken, from + taken * interval, fence, true
  -- How long ago what this script granted counts as asked for.
  state.late = from < now and now - from or 0
end

-- Gives unused permits back. Only the last grant can be undone without letting more through than the promise: permits
-- granted since then were spaced by the ones now coming back. Others are forfeited; a rate can lose by it, never gain.
function bucket.refund(state, permits, fence)
  if fence_of(state) == fence then
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

-- Most buckets of a claim were granted something by it, and end alike.
function bucket.stored(state, queue)
  local fence = fence_of(state)
  if queue.tail_of ~= fence then
    queue.tail_of, queue.tail = fence, format(":%d:%d", fence, queue.restarts)
  end
  return format("%d", state.tat) .. queue.tail
end

return bucket
