#!lua flags=no-writes
-- What every gate says that a job passes before it runs. Replies {"explained", facts, limits}: facts are JSON,
-- limits are rows as those of read-limits, for this job. Or {"unknown"}, {"unregistered"},
-- or {"again", leases_from}: it may run under a lease further on.
local time = require "time"
local queue = require "queue"
local limits = require "limits"
local tenants = require "tenants"
local record = require "record"
local finding = require "finding"
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
local delayed_key = KEYS[11] -- zset: job → instant
local aside_key = KEYS[12] -- hash: job → record
local dead_jobs_key = KEYS[13] -- hash: job → reason and record
local canceled_key = KEYS[14] -- zset: job → when the mark may be forgotten
local ids_key = KEYS[15] -- hash: period → ids given in it
local group_limits_key = KEYS[16] -- hash: limits shared with other queues
local group_queues_key = KEYS[17] -- zset: queues of the group
local now_given = ARGV[1] -- µs; empty: the server's time
local job_given = ARGV[2] -- the job's key, or empty
local tenant_given = ARGV[3] -- for a given id: its tenant
local action_given = ARGV[4] -- for a given id: the name of its action, or empty
local digest = ARGV[5] -- for a given id: its digest, or empty
local leases_from = ARGV[6] -- where to go on in the leases; "-inf" at first

local q = queue.open({
  prefix = string.sub(queue_key, 1, -6), queue = queue_key, limits = limits_key, running = running_key,
  group_limits = group_limits_key, group_queues = group_queues_key,
  ready = { high = ready_high_key, normal = ready_normal_key, low = ready_low_key }, parked = parked_key,
  unparking = unparking_key, leases = leases_key, idle = idle_key, delayed = delayed_key, aside = aside_key,
  dead_jobs = dead_jobs_key, canceled = canceled_key, ids = ids_key,
}, time.now(now_given))
if not q then
  return { "unregistered" }
end
local found = finding.at(q, job_given, tenant_given, action_given, digest, leases_from)
if found and found.state == "again" then
  return { "again", found.cursor }
end
if not found then
  return { "unknown" }
end
if not limits.open(q) then
  return { "unregistered" }
end
local tenant = tenants.load(q, found.tenant)
local cost = found.text and record.cost(found.text) or 1
local facts = {
  now = math.floor(q.now / 1000), queue = explaining.queue(q), workers = explaining.workers(q),
  tenant = explaining.tenant(q, tenant), job = explaining.job(q, found, tenant),
  cost = cost, closed_limits = explaining.closed_limits(q, tenant, cost),
}
return { "explained", cjson.encode(facts), readings.all(q, tenant, cost) }
