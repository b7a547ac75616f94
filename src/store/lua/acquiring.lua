-- Permits for code that has no job: many callers are answered at once, each gets all it asks for of every limit or
-- nothing. A caller of level high that is refused leaves a mark until the instant it is told; low ones are refused
-- while it stands.
local jitter = require "jitter"
local limits = require "limits"
local time = require "time"

local acquiring = {}

local max, min, huge = math.max, math.min, math.huge

-- Where nobody knows when: ask again then.
local ASK_AGAIN = 1000000
-- A low caller is told a later instant than the high one, who would else have to race with it.
local BEHIND_HIGH = 10000

local function key_of(q, state)
  return state.is_shared and q.keys.group_limits or q.keys.limits
end

-- The states of these names, with the scope of each; nil and what to reply when one cannot be had.
function acquiring.find(q, level, names, from, count)
  local found = {}
  for i = from, from + count - 1 do
    local state, scope
    for _, each in ipairs({ "queue", level }) do
      for _, candidate in ipairs(q.limits[each]) do
        if not state and candidate.rule.name == names[i] then
          state, scope = candidate, each
        end
      end
    end
    if not state then
      return nil, { "unknown", names[i] }
    elseif state.holder then
      return nil, { "slots", names[i] }
    end
    found[#found + 1] = { state = state, scope = scope, high = 0, high_changed = false }
  end
  for _, entry in ipairs(found) do
    entry.high = tonumber(redis.call("HGET", key_of(q, entry.state), entry.state.field .. "/high") or 0)
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

-- Grants that came too late to be used.
function acquiring.take_back(q, found, fence, permits)
  for _, entry in ipairs(found) do
    local state = entry.state
    if state.known then
      state.meter.refund(state, permits, fence)
      jitter.stale(state.known, q.now)
    end
  end
end

-- When all can grant it, 0 for now, and which is last.
local function instant(found, permits, now, level)
  local latest, last = 0, nil
  for _, entry in ipairs(found) do
    local at = entry.state.meter.instant(entry.state, permits)
    if level == "low" and entry.high > now then
      at = max(at, entry.high + BEHIND_HIGH)
    end
    if at > now and at > latest then
      latest, last = at, entry
    end
  end
  return latest, last
end

-- What is left for others; nil where an upstream has not told.
local function remaining(found)
  local least = huge
  for _, entry in ipairs(found) do
    local state = entry.state
    if state.meter.knows and not state.meter.knows(state) then
      return nil
    end
    least = min(least, state.meter.available(state))
  end
  return least
end

local function charge(q, found, permits, fence)
  local grants = {}
  for _, entry in ipairs(found) do
    local state = entry.state
    local member = state.meter.charge(state, permits, fence)
    if not state.is_shared then
      limits.count_grants(q, entry.scope, state.rule, permits)
    end
    if state.rule.kind == "quota" then
      local reservations = require "reservations"
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

-- Answers of one caller: 1 or 0, µs to wait, what remains (-1: unknown), which members of pools granted.
function acquiring.ask(q, found, level, permits, fence)
  local at, last = instant(found, permits, q.now, level)
  if at == 0 then
    local grants = charge(q, found, permits, fence)
    return 1, 0, remaining(found) or -1, grants
  end
  local until_us = at >= time.NEVER and q.now + ASK_AGAIN or at
  if not last.state.is_shared then
    limits.deny(q, last.scope, last.state)
  end
  if level == "high" then
    last.high, last.high_changed = max(last.high, until_us), true
  end
  return 0, until_us - q.now, remaining(found) or -1, ""
end

-- For how long the grants keep, in µs; 0: for ever.
function acquiring.fresh(found)
  local narrowest = huge
  for _, entry in ipairs(found) do
    narrowest = min(narrowest, entry.state.known and entry.state.jitter or huge)
  end
  return narrowest < huge and narrowest or 0
end

function acquiring.save(q, found)
  for _, entry in ipairs(found) do
    if entry.high_changed then
      redis.call("HSET", key_of(q, entry.state), entry.state.field .. "/high", string.format("%d", entry.high))
    end
  end
  limits.save(q)
end

-- The reply to all callers. The names and then the permits of each stand in `list`.
function acquiring.run(q, level, fence, stale_fence, stale_permits, list, from, names)
  local found, problem = acquiring.find(q, level, list, from, names)
  if not found then
    return problem
  end
  local answers = {}
  for i = from + names, #list do
    problem = problem or acquiring.costly(found, tonumber(list[i]))
  end
  if problem then
    return problem
  end
  if stale_permits > 0 then
    acquiring.take_back(q, found, stale_fence, stale_permits)
  end
  local fresh = acquiring.fresh(found)
  for i = from + names, #list do
    local granted, wait, left, grants = acquiring.ask(q, found, level, tonumber(list[i]), fence)
    local at = #answers
    answers[at + 1], answers[at + 2], answers[at + 3], answers[at + 4] = granted, wait, left, grants
  end
  if q.group then
    local group = require "group"
    group.close(q)
  end
  acquiring.save(q, found)
  return { "answers", string.format("%d", fence), fresh, answers }
end

return acquiring
