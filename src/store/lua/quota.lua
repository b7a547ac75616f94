-- What an upstream says is left of a budget that it counts itself. A pool has several such budgets (its members); each
-- job is granted by the one with most left. A quota without a pool is a pool of one without a name.
--
-- A rule is { name, kind, threshold, members }. Of each member: what remains (-1: unknown), when the upstream starts
-- over, since when that has been so, the upstream's own limit (0: unknown), what is in flight: granted to jobs that
-- have not ended, and the least that an answer said of it (`told`). While nothing is known, one job at a time goes out
-- to ask.
local time = require "time"

local quota = {}

local max, min, floor = math.max, math.min, math.floor

local SECOND = 1000000
local UNKNOWN = -1
-- Two answers that say when the upstream starts over mean the same within this.
local SAME = 5 * SECOND
local ONE = { "" }

local function fresh(name)
  return { name = name, remaining = UNKNOWN, reset = 0, since = 0, limit = 0, flying = 0, told = 0 }
end

-- The state is "restarts", then of each member "|name,remaining,reset,since,limit,flying,told". After a restart nothing
-- is known: answers may have been lost. What is in flight has its leases, and stays.
function quota.open(rule, stored, _, queue, now)
  local state = { meter = quota, rule = rule, now = now, closed_until = 0, members = {}, changed = false }
  local known = {}
  if stored then
    local restarts = tonumber(string.match(stored, "^%d+"))
    for name, remaining, reset, since, limit, flying, told in
      string.gmatch(stored, "|([^,]*),(%-?%d+),(%d+),(%d+),(%d+),(%d+),(%d+)")
    do
      local member = fresh(name)
      member.limit, member.flying = tonumber(limit), tonumber(flying)
      if restarts == queue.restarts and tonumber(reset) > now then
        member.remaining, member.reset, member.since = tonumber(remaining), tonumber(reset), tonumber(since)
        member.told = tonumber(told)
      end
      known[name] = member
    end
  end
  for i, name in ipairs(rule.members or ONE) do
    state.members[i] = known[name] or fresh(name)
  end
  return state
end

-- No job runs, so none is in flight: it ended while the quota was not there to hear of it.
function quota.lands(state)
  for _, member in ipairs(state.members) do
    member.flying = 0
  end
end

local function threshold(state, member)
  if member.limit > 0 then
    return min(state.rule.threshold, floor(member.limit / 10))
  end
  return state.rule.threshold
end

local function available(state, member)
  if member.remaining == UNKNOWN then
    return member.flying == 0 and 1 or 0
  end
  return max(0, member.remaining - threshold(state, member))
end

-- By all members together.
function quota.available(state)
  if state.closed_until > state.now then
    return 0
  end
  local sum = 0
  for _, member in ipairs(state.members) do
    sum = sum + available(state, member)
  end
  return sum
end

-- What jobs can cost together at most. A first call may cost what it likes, nobody knows better: it goes alone.
function quota.largest(state)
  local most = 0
  for _, member in ipairs(state.members) do
    most = max(most, available(state, member))
  end
  return most
end

local function instant(state, member, permits)
  if available(state, member) >= permits then
    return 0
  end
  if member.remaining == UNKNOWN then
    return member.flying == 0 and 0 or state.frees_at or time.NEVER
  end
  return member.reset
end

function quota.instant(state, permits)
  local earliest = time.NEVER
  for _, member in ipairs(state.members) do
    earliest = min(earliest, instant(state, member, permits))
  end
  return max(state.closed_until, earliest)
end

local function find(state, name)
  for _, member in ipairs(state.members) do
    if member.name == name then
      return member
    end
  end
  return nil
end

-- The member with most left of those that can grant so much.
local function richest(state, permits)
  local found, most = state.members[1], -1
  for _, member in ipairs(state.members) do
    local left = available(state, member)
    if left > most and instant(state, member, permits) == 0 then
      found, most = member, left
    end
  end
  return found
end

-- Charges a job to the member with most left and answers its name.
function quota.charge(state, permits)
  local member = richest(state, permits)
  if member.remaining ~= UNKNOWN then
    member.remaining = member.remaining - permits
  end
  member.flying = member.flying + permits
  state.changed = true
  return member.name
end

-- Who pays for further calls of a job: the member that granted it, by whose token it calls.
local function payer(state, permits, name)
  return find(state, name or "") or richest(state, permits)
end

-- While nothing is known, the job is the one that asks.
function quota.further_instant(state, permits, name)
  local member = payer(state, permits, name)
  return max(state.closed_until, member.remaining ~= UNKNOWN and instant(state, member, permits) or 0)
end

-- A further call of a job that runs: it is in flight already.
function quota.charge_again(state, permits, name)
  local member = payer(state, permits, name)
  if member.remaining ~= UNKNOWN then
    member.remaining = member.remaining - permits
    state.changed = true
  end
end

-- A job has ended, one way or another. `name` is nil where there is no pool.
function quota.release(state, permits, name)
  local member = find(state, name or "")
  if member and member.flying > 0 then
    member.flying = max(0, member.flying - permits)
    state.changed = true
  end
end

-- A job that was not started has called nobody.
function quota.refund(state, permits, fence, name)
  local member = find(state, name or "")
  if member and member.remaining ~= UNKNOWN and fence >= member.since then
    member.remaining = member.remaining + permits
    state.changed = true
  end
end

-- What an answer says. A later start-over replaces what is known; of the same the least that was told counts; an
-- earlier one can only lower it, and one that is over says nothing. What is in flight the upstream may not have counted
-- yet. The answer that says least was counted last of all that have told: what it leaves is known anew, so what was
-- taken off for calls that earlier answers turn out to have counted comes back.
function quota.learn(state, name, remaining, reset, limit)
  local member = find(state, name or "")
  if not member or reset <= state.now then
    return
  end
  local left = max(0, remaining - member.flying)
  if limit > 0 then
    member.limit = limit
  end
  if member.remaining == UNKNOWN or reset > member.reset + SAME then
    member.remaining, member.reset, member.since, member.told = left, reset, state.now, remaining
  elseif remaining < member.told and reset >= member.reset - SAME then
    member.remaining, member.told = left, remaining
  else
    member.remaining = min(member.remaining, left)
  end
  state.changed = true
end

function quota.lasts_until(state)
  local latest = 0
  for _, member in ipairs(state.members) do
    latest = max(latest, member.reset)
  end
  return latest
end

function quota.stored(state, queue)
  local texts = { string.format("%d", queue.restarts) }
  for i, member in ipairs(state.members) do
    local numbers = string.format(
      "%d,%d,%d,%d,%d,%d", member.remaining, member.reset, member.since, member.limit, member.flying, member.told
    )
    texts[i + 1] = member.name .. "," .. numbers
  end
  return table.concat(texts, "|")
end

-- What is in flight, and when the upstream starts over.
function quota.usage(state)
  local flying = 0
  for _, member in ipairs(state.members) do
    flying = flying + member.flying
  end
  return flying, quota.lasts_until(state)
end

-- Reserved without a job.
function quota.flies(state, permits, name)
  local member = find(state, name)
  if member then
    member.flying = member.flying + permits
  end
end

-- Whether any member says what is left.
function quota.knows(state)
  for _, member in ipairs(state.members) do
    if member.remaining ~= UNKNOWN then
      return true
    end
  end
  return false
end

-- Whether an answer is still to come that could open it before its instant.
function quota.is_asking(state)
  for _, member in ipairs(state.members) do
    if member.remaining == UNKNOWN then
      return true
    end
  end
  return false
end

-- The limits of all members' upstreams; 0 while none has told.
function quota.most(state)
  local sum = 0
  for _, member in ipairs(state.members) do
    sum = sum + member.limit
  end
  return sum
end

function quota.batch()
  return 1
end

return quota
