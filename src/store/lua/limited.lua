-- A tenant as far as its limits go, for scripts that neither start nor end a job of it: its hash as it is stored. Where
-- the tenant stands and what waits for it (tenants.lua) is not opened, and stays as it is.
local meters = require "meters"
local tenants = require "tenants"

local limited = {}

function limited.load(q, name)
  local key = q.keys.prefix .. "tenant:" .. name
  local flat, fields = redis.call("HGETALL", key), {}
  for i = 1, #flat, 2 do
    fields[flat[i]] = flat[i + 1]
  end
  return { name = name, key = key, fields = fields, limits = nil, running = nil }
end

-- What its limits have counted. Comes before all else that a script writes: it may have to read.
function limited.save(q, tenant)
  if not tenant.fields.state then
    -- It was forgotten while its last job ran, and has to be made anew, to be forgotten again.
    tenants.load(q, tenant.name).limits = tenant.limits
    tenants.save(q)
    return
  end
  local states, changes, count = tenant.limits, {}, 0
  for i = 1, #states do
    count = meters.collect(q, states[i], changes, count)
  end
  if count > 0 then
    redis.call("HSET", tenant.key, unpack(changes, 1, count))
  end
end

return limited
