-- Jobs that cost more than one permit: how many of a line one turn and the limits have room for.
local limits = require "limits"
local record = require "record"

local costs = {}

local max, min, huge = math.max, math.min, math.huge

local function scopes(q, tenant, level)
  if not q.limits then
    return {}
  end
  return { q.limits.queue, q.limits[level], limits.of_tenant(q, tenant) }
end

-- What one job can cost at most among several, and how many jobs there are slots for.
local function room(groups)
  local permits, slots = huge, huge
  for _, states in ipairs(groups) do
    for _, state in ipairs(states) do
      local meter = state.meter
      if state.holder then
        slots = min(slots, meter.available(state))
      else
        permits = min(permits, (meter.largest or meter.available)(state))
      end
    end
  end
  return permits, slots
end

-- When all of these can grant so much, and the limit that can last.
local function instant(states, permits)
  local latest, last = 0, nil
  for _, state in ipairs(states) do
    local at = state.meter.instant(state, permits)
    if at > latest then
      latest, last = at, state
    end
  end
  return latest, last
end

-- `rest` is what is left of the turn; the last job may overdraw it, and the next turn pays. Answers how many jobs there
-- are slots for.
function costs.open(q, tenant, level, rest)
  local groups = scopes(q, tenant, level)
  local permits, slots = room(groups)
  q.budget = { rest = rest, permits = permits, groups = groups, spent = 0, need = nil, is_used_up = false }
  return slots
end

-- Whether the job can be taken as well. The first may be one that the limits save up for; further ones must fit into
-- what is there.
function costs.fits(q, text)
  local budget, cost = q.budget, record.cost(text)
  if budget.spent >= budget.rest or (budget.spent > 0 and budget.spent + cost > budget.permits) then
    budget.is_used_up = true
    return false
  end
  if budget.spent > 0 then
    budget.spent = budget.spent + cost
    return true
  end
  for _, states in ipairs(budget.groups) do
    if instant(states, cost) > q.now then
      budget.need = cost
      return false
    end
  end
  budget.spent = cost
  return true
end

-- Who cannot grant what the next job costs, and until when: the tenant's own limits are asked first. Answers its place
-- among queue, level and tenant (1 to 3), the instant and the limit.
function costs.lacking(q)
  local budget = q.budget
  for i = #budget.groups, 1, -1 do
    local until_us, limit = instant(budget.groups[i], budget.need)
    if until_us > q.now then
      return i, max(until_us, q.now + 1), limit
    end
  end
  return nil
end

return costs
