-- Jobs that run no longer.
local time = require "time"
local tenants = require "tenants"

local running = {}

-- A slot of a concurrency limit is free: a tenant that waited for one, not for an instant, is back in line. Without
-- such limits nobody waits so, and the tenant need not be read.
function running.ends(q, name, level, count)
  tenants.runs(q, name, level, -count)
  if q.limits and q.limits.may_hold and tonumber(redis.call("ZSCORE", q.keys.parked, name) or 0) == time.NEVER then
    local standing = require "standing"
    standing.unpark(q, tenants.load(q, name))
  end
end

return running
