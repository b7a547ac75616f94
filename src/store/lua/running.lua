-- Jobs that run no longer.
local time = require "time"
local tenants = require "tenants"
local limits = require "limits"
local standing = require "standing"

local running = {}

-- A slot of a concurrency limit is free, or an upstream has answered: a tenant that waited for that, not for an
-- instant, is back in line. Without such limits nobody waits so, and the tenant need not be read. The jobs cost
-- `permits`; `members` are those of pools that granted them, by limit.
function running.ends(q, name, level, count, permits, members)
  tenants.runs(q, name, level, -count)
  if q.limits and q.limits.has_quota then
    limits.release(q, name, level, permits, members)
  end
  if q.limits and q.limits.may_hold and tonumber(redis.call("ZSCORE", q.keys.parked, name) or 0) == time.NEVER then
    standing.unpark(q, tenants.load(q, name))
  end
end

return running
