#!lua flags=no-writes
-- What every gate says that a tenant's jobs pass before they run. Replies {"explained", facts, limits}: facts are JSON,
-- limits are rows as those of read-limits, for its next job. Or {"unregistered"}.
local time = require "time"
local queue = require "queue"
local limits = require "limits"
local tenants = require "tenants"
local readings = require "readings"
local explaining = require "explaining"
local queue_key = KEYS[1] -- hash: the queue's state
local ready_high_key = KEYS[2] -- zset: tenant → score
local ready_normal_key = KEYS[3] -- zset: tenant → score
local ready_low_key = KEYS[4] -- zset: tenant → score
local parked_key = KEYS[5] -- zset: tenant → instant
local unparking_key = KEYS[6] -- zset: tenants parked under limits that have changed
local limits_key = KEYS[7] -- hash: state of the queue's limits
local running_key = KEYS[8] -- hash: tenant → jobs that run
local leases_key = KEYS[9] -- zset: fence:client → when the lease runs out
local idle_key = KEYS[10] -- zset: client → until when it is known to wait
local aside_key = KEYS[11] -- hash: job → record
local group_limits_key = KEYS[12] -- hash: limits shared with other queues
local group_queues_key = KEYS[13] -- zset: queues of the group
local now_given = ARGV[1] -- µs; empty: the server's time
local name = ARGV[2] -- the tenant

local q = queue.open({
  prefix = string.sub(queue_key, 1, -6), queue = queue_key, limits = limits_key, running = running_key,
  group_limits = group_limits_key, group_queues = group_queues_key,
  ready = { high = ready_high_key, normal = ready_normal_key, low = ready_low_key }, parked = parked_key,
  unparking = unparking_key, leases = leases_key, idle = idle_key, aside = aside_key,
}, time.now(now_given))
if not q then
  return { "unregistered" }
end
if not limits.open(q) then
  return { "unregistered" }
end
local tenant = tenants.load(q, name)
local level, cost = explaining.next_of(q, tenant)
local facts = {
  now = math.floor(q.now / 1000), queue = explaining.queue(q), workers = explaining.workers(q),
  tenant = explaining.tenant(q, tenant), level = level, cost = cost,
  closed_limits = explaining.closed_limits(q, tenant, cost),
}
return { "explained", cjson.encode(facts), readings.all(q, tenant, cost) }
