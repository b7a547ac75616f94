#!lua flags=allow-oom
-- Changes one tenant's settings, and at once where it stands: weight, base priority, level override, pause, limits.
-- Replies {"changed"} or {"unregistered"}.
local time = require "time"
local queue = require "queue"
local opening = require "opening"
local tenants = require "tenants"
local standing = require "standing"
local waking = require "waking"
local events = require "events"
local queue_key = KEYS[1] -- hash: the queue's state
local ready_high_key = KEYS[2] -- zset: tenant → score
local ready_normal_key = KEYS[3] -- zset: tenant → score
local ready_low_key = KEYS[4] -- zset: tenant → score
local since_high_key = KEYS[5] -- zset: tenant → able to run since
local since_normal_key = KEYS[6] -- zset: tenant → able to run since
local since_low_key = KEYS[7] -- zset: tenant → able to run since
local parked_key = KEYS[8] -- zset: tenant → instant
local unparking_key = KEYS[9] -- zset: tenants parked under limits that have changed
local paused_key = KEYS[10] -- zset: tenant → paused since
local idle_key = KEYS[11] -- zset: client → until when it is known to wait
local running_key = KEYS[12] -- hash: tenant → jobs that run
local events_key = KEYS[13] -- stream: what happened
local now_given = ARGV[1] -- µs; empty: the server's time
local name = ARGV[2] -- the tenant
local patch_json = ARGV[3] -- JSON: weight, base, level ("" for none), paused, limits by name, unpark

local now = time.now(now_given)
local q = opening.open(
  now, queue_key, { ready_high_key, ready_normal_key, ready_low_key },
  { since_high_key, since_normal_key, since_low_key }, parked_key, unparking_key,
  { idle = idle_key, running = running_key, events = events_key }
)
if not q then
  return { "unregistered" }
end
local patch = cjson.decode(patch_json)
local tenant = tenants.load(q, name)
local HOLDS = { concurrency = "slots", quota = "quota" }
local own_limits = q.has_own_quota and "quota" or q.has_own_slots and "slots" or "buckets"

if patch.weight then
  standing.reweigh(q, tenant, patch.weight)
  tenants.set(tenant, "weight", patch.weight ~= 1 and patch.weight or nil)
end
if patch.base then
  standing.rebase(tenant, patch.base)
  tenants.set(tenant, "base", patch.base ~= 0 and patch.base or nil)
end
if patch.level then
  tenants.set(tenant, "override", patch.level ~= "" and patch.level or nil)
end
if patch.limits then
  local own = {}
  for _, rule in ipairs(tenant.fields.limits and cmsgpack.unpack(tenant.fields.limits) or {}) do
    if not patch.limits[rule.name] then
      own[#own + 1] = rule
    end
  end
  for _, rule in pairs(patch.limits) do
    if rule.kind ~= "declared" then
      own[#own + 1] = rule
    end
  end
  table.sort(own, function(a, b)
    return a.name < b.name
  end)
  for _, rule in ipairs(own) do
    own_limits = own_limits ~= "quota" and HOLDS[rule.kind] or own_limits
  end
  tenants.set(tenant, "limits", #own > 0 and cmsgpack.pack(own) or nil)
  events.add(q, "limits.changed", { "tenant", name })
end
if patch.paused == true and not tenant.fields.paused then
  tenants.set(tenant, "paused", string.format("%.0f", now))
elseif patch.paused == false then
  tenants.set(tenant, "paused", nil)
end
if patch.limits or patch.paused ~= nil or patch.unpark then
  standing.unpark(q, tenant)
end
standing.settle(q, tenant)
local sleeper = waking.find(q)

-- Claims look for limits of tenants' own, and for tenants that wait without an instant, only once there are any.
if tenant.fields.limits then
  redis.call("HSET", queue_key, "own_limits", own_limits)
end
if patch.paused == true then
  redis.call("ZADD", paused_key, "NX", now, name)
elseif patch.paused == false then
  redis.call("ZREM", paused_key, name)
end
tenants.save(q)
queue.save(q)
if sleeper then
  waking.wake(q, sleeper)
end
return { "changed" }
