-- Jobs that run no longer.
local time = require "time"
local tenants = require "tenants"
local limits = require "limits"
local meters = require "meters"
local standing = require "standing"

local running = {}

-- A slot of a concurrency limit is free, or an upstream has answered: a tenant that waited for that, not for an
-- instant, is back in line; so is one that waited for the instant at which a quota starts over, where that has
-- something to grant before. Without such limits nobody waits so, and the tenant need not be read.
function running.free(q, name)
  if not q.limits or not q.limits.may_hold then
    return
  end
  local until_us = tonumber(redis.call("ZSCORE", q.keys.parked, name) or 0)
  if until_us == time.NEVER then
    standing.unpark(q, tenants.load(q, name))
  elseif until_us > 0 and q.limits.has_quota then
    local tenant = tenants.load(q, name)
    local states = limits.of_tenant(q, tenant)
    if meters.named({ states }, tenant.fields.parked, "quota") and limits.available(states) > 0 then
      standing.unpark(q, tenant)
    end
  end
end

-- The jobs cost `permits`; `members` are those of pools that granted them, by limit.
function running.ends(q, name, level, count, permits, members)
  tenants.runs(q, name, level, -count)
  if q.limits and q.limits.has_quota then
    limits.release(q, name, level, permits, members)
  end
  running.free(q, name)
end

return running
