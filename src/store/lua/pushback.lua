-- What an upstream that pushes back teaches a limit: it is closed until the instant the upstream named, and a bucket
-- goes on at a lower rate and climbs back. All times in microseconds, rates as shares of the configured one.
--
-- The state is "closed until:share:cut at:ceiling": the share it was cut to, when, and the share at which the upstream
-- pushed back. What the rate is now follows from these.
local pushback = {}

local max, min, floor = math.max, math.min, math.floor

local SECOND = 1000000
local CUT = 0.7
local CLIMB = 0.05 -- a second, of the configured rate
-- Just below where it was pushed back it stays for a while: climbing on at once would be pushed back every few seconds.
local HELD, HELD_FOR = 0.95, 10 * SECOND
local LEAST = 0.01

function pushback.open(stored, now)
  local closed, share, cut_at, ceiling = string.match(stored, "^(%d+):([%d.]+):(%d+):([%d.]+)$")
  return {
    closed_until = tonumber(closed), share = tonumber(share), cut_at = tonumber(cut_at), ceiling = tonumber(ceiling),
    now = now,
  }
end

-- The share of its rate that the limit has now.
function pushback.share(state)
  if state.share >= 1 then
    return 1
  end
  local since = max(state.cut_at, state.closed_until)
  local climbed = max(0, state.now - since) / SECOND * CLIMB
  local held = max(state.share, state.ceiling * HELD)
  if state.share + climbed <= held then
    return state.share + climbed
  end
  local climbed_on = climbed - (held - state.share) - HELD_FOR / SECOND * CLIMB
  return min(1, held + max(0, climbed_on))
end

-- One answer that pushed back, to a call granted under `fence`; `closed_until` is 0 if it named no instant. Answers to
-- calls that were granted before the cut say nothing new: `last` is the last fence given, which after a failover to a
-- clock that is behind is larger than now. Answers the new state.
function pushback.learn(state, fence, closed_until, now, last)
  local known = state or { closed_until = 0, share = 1, cut_at = 0, ceiling = 1, now = now }
  if fence >= known.cut_at then
    local share = pushback.share(known)
    known.share, known.ceiling, known.cut_at = max(LEAST, share * CUT), share, max(now, last + 1)
  end
  known.closed_until = max(known.closed_until, closed_until)
  return known
end

function pushback.stored(state)
  local cut_at = string.format("%d", state.cut_at)
  return string.format("%d:%.4f:%s:%.4f", floor(state.closed_until), state.share, cut_at, state.ceiling)
end

return pushback
