-- A denial parks the tenant, or a job of it was pushed back by the upstream. How often that was and in which second it
-- was last stand in one number: a tenant under a limit of its own is parked with nearly every turn.
local throttling = {}

local ONE = 2 ^ 33

function throttling.note(q, tenant)
  local throttled = tenant.throttled
  tenant.throttled = throttled - throttled % ONE + ONE + (q.now - q.now % 1000000) / 1000000
end

-- How often, and when last (µs, 0 for never).
function throttling.read(tenant)
  local second = tenant.throttled % ONE
  return (tenant.throttled - second) / ONE, second * 1000000
end

return throttling
