-- Permits for code that has no job: many callers are answered at once, each gets all it asks for of every limit or
-- nothing. A caller of level high that is refused leaves a mark until the instant it is told; low ones are refused
-- while it stands.
local jitter = require "jitter"
local meters = require "meters"
local time = require "time"
local reservations = require "reservations"
local limits = require "limits"
local group = require "group"

local acquiring = {}

local max, min, floor, huge = math.max, math.min, math.floor, math.huge

-- Where nobody knows when: ask again then.
local ASK_AGAIN = 1000000
-- An upstream's clock is not ours: who asks by hand is told no instant that is nearer.
local SHORTEST_QUOTA_WAIT = 1000000
-- A low caller is told a later instant than the high one, who would else have to race with it.
local BEHIND_HIGH = 10000

local function key_of(q, state)
  return state.is_shared and q.keys.group_limits or q.keys.limits
end

-- What a mark is worth nothing without: the instant that a high caller was told is that of the rule it was told by.
local function stamp_of(rule)
  local shape = rule.burst or rule.offset or 0
  local stamp = string.format("%d/%d/%d", rule.count or rule.threshold, rule.window or 0, shape)
  return rule.zones and stamp .. "/" .. redis.sha1hex(table.concat(rule.zones, ",")) or stamp
end

-- Until when a high caller waits; 0: none does, or the limit has changed since.
local function mark_of(q, state)
  local stored = redis.call("HGET", key_of(q, state), state.field .. "/high")
  if not stored then
    return 0
  end
  local instant, stamp = string.match(stored, "^(%d+):(.*)$")
  return stamp == stamp_of(state.rule) and tonumber(instant) or 0
end

-- The states of these names, with the scope of each; nil and what to reply when one cannot be had.
function acquiring.find(q, level, names, from, count)
  local found = {}
  for i = from, from + count - 1 do
    local state, list = meters.named({ q.limits.queue, q.limits[level] }, names[i])
    if not state then
      return nil, { "unknown", names[i] }
    elseif state.holder then
      return nil, { "slots", names[i] }
    end
    found[#found + 1] = { state = state, scope = list == 1 and "queue" or level, high = 0, high_changed = false }
  end
  for _, entry in ipairs(found) do
    entry.high = mark_of(q, entry.state)
  end
  return found
end

-- What is to be replied when one could never grant so much.
function acquiring.costly(found, permits)
  for _, entry in ipairs(found) do
    local rule = entry.state.rule
    if rule.count and permits > rule.count then
      return { "costly", rule.name, rule.count }
    end
  end
  return nil
end

-- Of a quota nobody has called: it is not in flight, and the next may ask.
local function take_back_reserved(state, fence, permits, member)
  state.meter.refund(state, permits, fence, member)
  reservations.settle(state, member, permits)
end

-- Grants that came too late to be used. `members` says which of pools had granted them: "<limit>=<member>=<permits>",
-- joined by &.
function acquiring.take_back(q, found, fence, permits, members)
  for _, entry in ipairs(found) do
    local state = entry.state
    if state.known then
      state.meter.refund(state, permits, fence)
      jitter.stale(state.known, q.now, permits)
    elseif state.rule.kind == "quota" and not state.rule.members then
      take_back_reserved(state, fence, permits, "")
    elseif state.rule.kind == "quota" then
      for limit, member, of_it in string.gmatch(members, "([^=&]+)=([^=&]*)=(%d+)") do
        if limit == state.rule.name then
          take_back_reserved(state, fence, tonumber(of_it), member)
        end
      end
    end
  end
end

-- When all can grant it, 0 for now, and which is last.
local function instant(found, permits, now, level)
  local latest, last = 0, nil
  for _, entry in ipairs(found) do
    local at = entry.state.meter.instant(entry.state, permits)
    if at > now and entry.state.rule.kind == "quota" then
      at = max(at, now + SHORTEST_QUOTA_WAIT)
    end
    if level == "low" and entry.high > now then
      at = max(at, entry.high + BEHIND_HIGH)
    end
    if at > now and at > latest then
      latest, last = at, entry
    end
  end
  return latest, last
end

local function available(found)
  local least = huge
  for _, entry in ipairs(found) do
    least = min(least, entry.state.meter.available(entry.state))
  end
  return least
end

-- What is left for others; -1 where an upstream has not told.
local function remaining(found)
  for _, entry in ipairs(found) do
    local state = entry.state
    if state.meter.knows and not state.meter.knows(state) then
      return -1
    end
  end
  return available(found)
end

-- How many of the callers can be charged in one step, to the same end as one after the other: a pool chooses a member
-- for each, and more than is available (a bucket saves up) goes out once.
local function together(found, level, callers, permits, now)
  for _, entry in ipairs(found) do
    if entry.state.rule.members then
      return 1
    end
  end
  local fitting = min(callers, floor(available(found) / permits))
  if fitting > 1 and instant(found, fitting * permits, now, level) == 0 then
    return fitting
  end
  return 1
end

local function charge(q, found, permits, fence)
  local grants = {}
  for _, entry in ipairs(found) do
    local state = entry.state
    local member = state.meter.charge(state, permits, fence)
    if not state.is_shared then
      limits.count_grants(q, entry.scope, state, permits)
    end
    if state.rule.kind == "quota" then
      reservations.add(state, member, permits)
    end
    if state.rule.members then
      grants[#grants + 1] = state.rule.name .. "=" .. member
    end
    if state.known then
      jitter.granted(state.known, permits, q.now)
    end
  end
  return table.concat(grants, "&")
end

-- Callers who cannot be granted it now. Answers how many µs they are to wait.
local function refuse(q, level, callers, at, last)
  local until_us = at >= time.NEVER and q.now + ASK_AGAIN or at
  if not last.state.is_shared then
    limits.deny(q, last.scope, last.state, callers)
  end
  if level == "high" then
    last.high, last.high_changed = max(last.high, until_us), true
  end
  return until_us - q.now
end

-- Callers in a row who ask for the same. What they are answered goes to the end of `answers`: how many of them, 1 or 0,
-- µs to wait, what remains after the last of them (-1: unknown), which members of pools granted. Who comes after one
-- that is refused is refused as well.
function acquiring.ask(q, found, level, callers, permits, fence, answers)
  local left = callers
  while left > 0 do
    local at, last = instant(found, permits, q.now, level)
    local answered, granted, wait, grants = left, 0, 0, ""
    if at == 0 then
      answered, granted = together(found, level, left, permits, q.now), 1
      grants = charge(q, found, answered * permits, fence)
    else
      wait = refuse(q, level, left, at, last)
    end
    local n = #answers
    answers[n + 1], answers[n + 2], answers[n + 3] = answered, granted, wait
    answers[n + 4], answers[n + 5] = remaining(found), grants
    left = left - answered
  end
end

-- For how long the grants keep, in µs; 0: for ever.
function acquiring.fresh(found)
  local shortest = huge
  for _, entry in ipairs(found) do
    shortest = min(shortest, entry.state.known and jitter.keeps(entry.state) or huge)
  end
  return shortest < huge and shortest or 0
end

local function save_marks(q, found)
  for _, entry in ipairs(found) do
    if entry.high_changed then
      local state = entry.state
      local mark = string.format("%d:%s", entry.high, stamp_of(state.rule))
      redis.call("HSET", key_of(q, state), state.field .. "/high", mark)
    end
  end
end

-- The reply to all callers; what they were granted is for the script to save. The names stand in `list`, and then how
-- many callers in a row ask for how many permits.
function acquiring.run(q, level, fence, stale, list, from, names)
  local found, problem = acquiring.find(q, level, list, from, names)
  if not found then
    return problem
  end
  local answers = {}
  for i = from + names, #list, 2 do
    problem = problem or acquiring.costly(found, tonumber(list[i + 1]))
  end
  if problem then
    return problem
  end
  if stale.permits > 0 then
    acquiring.take_back(q, found, stale.fence, stale.permits, stale.members)
  end
  for i = from + names, #list, 2 do
    acquiring.ask(q, found, level, tonumber(list[i]), tonumber(list[i + 1]), fence, answers)
  end
  local fresh = acquiring.fresh(found)
  if q.group then
    group.close(q)
  end
  save_marks(q, found)
  return { "answers", string.format("%d", fence), fresh, answers }
end

return acquiring
