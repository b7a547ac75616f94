-- What the limits say to a claim: how much they can grant, and what becomes of whom they deny.
local limits = require "limits"
local standing = require "standing"
local costs = require "costs"

local granting = {}

local huge, min = math.huge, math.min

-- What the limits of the queue or a level can grant; without any, everything.
function granting.available(q, scope)
  local states = q.limits[scope]
  if #states == 0 then
    return huge
  end
  return limits.available(states)
end

-- What a tenant's own limits can grant; when that is nothing, until when and which of them.
function granting.available_to(q, tenant)
  local states = tenant.limits or limits.of_tenant(q, tenant)
  if not states[1] then
    return huge
  end
  return limits.available(states)
end

-- The same when jobs have just cost as much as they could grant: where there is one limit, it need not be asked again.
-- Slots must: these count jobs, whatever each costs.
function granting.used_up(q, tenant)
  local states = tenant.limits
  local state = states[1]
  if states[2] or state.holder or state.rule.members then
    return granting.available_to(q, tenant)
  end
  return 0, state.meter.instant(state, 1), state
end

-- A limit of the queue or a level has nothing to grant. It denies nobody when nobody is in line for it.
local function note_denied(q, scope, limit, levels)
  for i = 1, #levels do
    if q.at[levels[i]].weights > 0 then
      limits.deny_all(q, scope, limit)
      return
    end
  end
end

-- What the queue and the level can grant. When one of them is 0, nobody of the level gets anything in this claim; the
-- queue's closes all of them.
function granting.room(q, level, levels)
  local claim = q.claim
  local of_queue, _, queue_limit = granting.available(q, "queue")
  if of_queue == 0 then
    note_denied(q, "queue", queue_limit, levels)
    claim.is_closed = true
    claim.wait_until = limits.batch_instant(q.limits.queue, claim.left)
    return 0, 0
  end
  local of_level, _, level_limit = granting.available(q, level)
  if of_level == 0 then
    note_denied(q, level, level_limit, { level })
    claim.wait_until = min(claim.wait_until, limits.batch_instant(q.limits[level], claim.left))
  end
  return of_queue, of_level
end

function granting.charge(q, tenant, level, permits, from)
  local claim = q.claim
  local keeps = limits.charge(q, tenant, level, permits, claim.fence, from)
  if keeps then
    claim.fresh = min(claim.fresh or keeps, keeps)
  end
end

function granting.park(q, tenant, at, until_us, limit)
  at.used, at.changed = 0, true
  limits.deny(q, "tenant", limit)
  standing.park(q, tenant, until_us, limit.rule.name)
end

-- The next job costs more than there is. Whoever lacks it waits until it is there; where that is the queue or the
-- level, all others wait with it, or what they take would keep it from ever coming together.
function granting.save_up(q, tenant, level, at)
  local claim = q.claim
  local scope, until_us, limit = costs.lacking(q)
  if scope == 3 then
    granting.park(q, tenant, at, until_us, limit)
    return
  end
  limits.deny_all(q, scope == 1 and "queue" or level, limit)
  claim.saving = claim.saving or {}
  claim.saving[level], claim.is_closed = true, scope == 1
  claim.wait_until = scope == 1 and until_us or min(claim.wait_until, until_us)
end

return granting
