-- What a limit knows of the way to its upstream: by how much it varies. Grants that come too late to be used double it,
-- a calm minute halves it again. One for all tenants under a limit of one name. All times in microseconds.
local jitter = {}

local max, min, floor = math.max, math.min, math.floor

local SECOND = 1000000
-- How stale grants are judged: over this long, against these shares.
local JUDGED_OVER = 10 * SECOND
local TOO_STALE, CALM = 0.02, 0.005
local CALM_FOR = 60 * SECOND
local LARGEST = SECOND
-- Of the jitter: the age at which a grant is stale.
local FRESH_SHARE = 0.6

-- A window has room for grants beside it, whatever was learnt when it was longer.
local function largest(rule)
  local of_window = rule.kind == "window" and floor(rule.window / 2) or rule.window
  return min(LARGEST, max(of_window, rule.jitter))
end

-- What was learnt under one rule, as another of the same name may go by it: a tenant's own in place of the template's.
function jitter.within(rule, width)
  return min(max(rule.jitter, width), largest(rule))
end

-- The state is "jitter:since:granted:stale:calm since". Within one script all go by the jitter it `began` with, whoever
-- is asked first; what is learnt in it counts from the next.
function jitter.open(rule, stored, now)
  local state = { rule = rule, jitter = rule.jitter, since = now, granted = 0, stale = 0, calm_since = now }
  if stored then
    local known, since, granted, stale, calm = string.match(stored, "^(%d+):(%d+):(%d+):(%d+):(%d+)$")
    state.jitter = jitter.within(rule, tonumber(known))
    state.since, state.granted, state.stale = tonumber(since), tonumber(granted), tonumber(stale)
    state.calm_since = tonumber(calm)
  end
  state.began = state.jitter
  return state
end

-- Judges the last ten seconds, which are over.
local function judge(state, now)
  local share = state.granted > 0 and state.stale / state.granted or 0
  if share > TOO_STALE then
    state.jitter = min(state.jitter * 2, largest(state.rule))
    state.calm_since = now
  elseif share > CALM then
    state.calm_since = now
  elseif now - state.calm_since >= CALM_FOR and state.jitter > state.rule.jitter then
    state.jitter = max(state.rule.jitter, floor(state.jitter / 2))
    state.calm_since = now
  end
  state.since, state.granted, state.stale = now, 0, 0
end

-- For how long a grant of the limit keeps that counts as asked for now. Many limits under one rule ask for the same.
function jitter.keeps_for(limit)
  local rule, width = limit.rule, limit.jitter
  if rule.keeps_with ~= width then
    rule.keeps_with, rule.keeps = width, floor(width * FRESH_SHARE)
  end
  return rule.keeps
end

-- The same of what it has just granted.
function jitter.keeps(limit)
  return jitter.keeps_for(limit) - (limit.late or 0)
end

-- Before the first grant of a script, or what else is counted, is added.
function jitter.begin(state, now)
  if now - state.since >= JUDGED_OVER then
    judge(state, now)
  end
  state.changed = true
end

function jitter.granted(state, permits, now)
  jitter.begin(state, now)
  state.granted = state.granted + permits
end

-- `count` grants, of one job each unless it is given.
function jitter.stale(state, now, count)
  jitter.begin(state, now)
  state.stale = state.stale + (count or 1)
end

function jitter.stored(state)
  return string.format("%d:%d:%d:%d:%d", state.jitter, state.since, state.granted, state.stale, state.calm_since)
end

return jitter
