#!lua flags=allow-oom
-- Changes settings and limits while running, for every worker at once. Tenants that a changed limit had parked are put
-- back in line, in bounded steps: the first by this script, the others by the claims that follow.
-- Replies {"changed"}, {"again"} if an earlier change is still being carried out (call again), {"twice", limit} when a
-- shared limit would be attached a second time: nothing was done, or {"unregistered"}.
local time = require "time"
local queue = require "queue"
local opening = require "opening"
local settings = require "settings"
local tenants = require "tenants"
local lifting = require "lifting"
local events = require "events"
local group = require "group"
local queue_key = KEYS[1] -- hash: the queue's state
local ready_high_key = KEYS[2] -- zset: tenant → score
local ready_normal_key = KEYS[3] -- zset: tenant → score
local ready_low_key = KEYS[4] -- zset: tenant → score
local since_high_key = KEYS[5] -- zset: tenant → able to run since
local since_normal_key = KEYS[6] -- zset: tenant → able to run since
local since_low_key = KEYS[7] -- zset: tenant → able to run since
local parked_key = KEYS[8] -- zset: tenant → instant
local unparking_key = KEYS[9] -- zset: tenants parked under limits that have changed
local settings_key = KEYS[10] -- hash: what is declared, what was changed
local idle_key = KEYS[11] -- zset: client → until when it is known to wait
local running_key = KEYS[12] -- hash: tenant → jobs that run
local events_key = KEYS[13] -- stream: what happened
local group_limits_key = KEYS[14] -- hash: limits shared with other queues
local group_queues_key = KEYS[15] -- zset: queues of the group
local now_given = ARGV[1] -- µs; empty: the server's time
local patch = ARGV[2] -- JSON: values, limits

local q = opening.open(
  time.now(now_given), queue_key, { ready_high_key, ready_normal_key, ready_low_key },
  { since_high_key, since_normal_key, since_low_key }, parked_key, unparking_key,
  {
    idle = idle_key, running = running_key, events = events_key, group_limits = group_limits_key,
    group_queues = group_queues_key,
  }
)
if not q then
  return { "unregistered" }
end
local declared = cjson.decode(redis.call("HGET", settings_key, "declared"))
local changed = cjson.decode(redis.call("HGET", settings_key, "changed") or "{}")
local wanted = cjson.decode(patch)
changed = settings.merge(changed, wanted)
local packed = settings.compile(declared, changed, q.settings.known_since)
local compiled = cmsgpack.unpack(packed)
local twice = settings.attached_twice(compiled.limits)
if twice and not settings.attached_twice(q.settings.limits) then
  return { "twice", twice }
end
if wanted.limits then
  events.add(q, "limits.changed", {})
end
local lift = lifting.open(q)
group.open_leaving(q, compiled)

redis.call("HSET", settings_key, "changed", cjson.encode(changed))
redis.call("HSET", queue_key, "settings", packed)
tenants.save(q)
queue.save(q)
group.save_leaving(q)
return { lifting.save(q, lift) and "changed" or "again" }
