#!lua flags=allow-oom
-- Cancels one job. A waiting one is marked, and the claim that meets it drops it; the counts change now. A delayed one
-- goes at once. A running one is told to its worker, and ends as canceled unless it succeeds first.
-- Replies {"canceled"}, {"canceling"} for a running one, {"ended", state}, {"unknown"}, or {"again", leases_from}:
-- nothing was done, it may run under a lease further on.
local time = require "time"
local queue = require "queue"
local opening = require "opening"
local tenants = require "tenants"
local standing = require "standing"
local lanes = require "lanes"
local fronts = require "fronts"
local places = require "places"
local finding = require "finding"
local actions = require "actions"
local endings = require "endings"
local duties = require "duties"
local requests = require "requests"
local waking = require "waking"
local queue_key = KEYS[1] -- hash: the queue's state
local ready_high_key = KEYS[2] -- zset: tenant → score
local ready_normal_key = KEYS[3] -- zset: tenant → score
local ready_low_key = KEYS[4] -- zset: tenant → score
local since_high_key = KEYS[5] -- zset: tenant → able to run since
local since_normal_key = KEYS[6] -- zset: tenant → able to run since
local since_low_key = KEYS[7] -- zset: tenant → able to run since
local parked_key = KEYS[8] -- zset: tenant → instant
local unparking_key = KEYS[9] -- zset: tenants parked under limits that have changed
local delayed_key = KEYS[10] -- zset: job → instant
local aside_key = KEYS[11] -- hash: job → record
local leases_key = KEYS[12] -- zset: fence:client → when the lease runs out
local dead_jobs_key = KEYS[13] -- hash: job → reason and record
local canceled_key = KEYS[14] -- zset: job → when the mark may be forgotten
local ids_key = KEYS[15] -- hash: period → ids given in it
local client_key = KEYS[16] -- hash: replies to the client's last requests
local running_key = KEYS[17] -- hash: tenant → jobs that run
local idle_key = KEYS[18] -- zset: client → until when it is known to wait
local events_key = KEYS[19] -- stream: what happened
local duties_key = KEYS[20] -- zset: duty → when it may be taken
local duty_tries_key = KEYS[21] -- hash: duty → how often it was tried in vain
local backlog_key = KEYS[22] -- zset: tenant → binary digits of how many of its jobs wait
local now_given = ARGV[1] -- µs; empty: the server's time
local request = tonumber(ARGV[2]) -- number of the client's request
local job_given = ARGV[3] -- the job's key, or empty
local tenant_given = ARGV[4] -- for a given id: its tenant
local action_given = ARGV[5] -- for a given id: the name of its action, or empty
local digest = ARGV[6] -- for a given id: its digest, or empty
local leases_from = ARGV[7] -- where to go on in the leases; "-inf" at first

local known = requests.recall(client_key, request)
if known then
  return known
end
local q = opening.open(
  time.now(now_given), queue_key, { ready_high_key, ready_normal_key, ready_low_key },
  { since_high_key, since_normal_key, since_low_key }, parked_key, unparking_key,
  { delayed = delayed_key, aside = aside_key, leases = leases_key, dead_jobs = dead_jobs_key, canceled = canceled_key,
    ids = ids_key, running = running_key, idle = idle_key, events = events_key, duties = duties_key,
    backlog = backlog_key,
    duty_tries = duty_tries_key }
)
if not q then
  return { "unknown" }
end
local found = finding.at(q, job_given, tenant_given, action_given, digest, leases_from)
if found and found.state == "again" then
  return { "again", found.cursor }
end
if not found then
  return { "unknown" }
end
if found.state == "canceled" then
  return { "canceled" }
end
if found.state == "succeeded" or found.state == "failed" then
  return { "ended", found.state }
end
local job, tenant = found.job, tenants.load(q, found.tenant)
if found.state == "running" then
  redis.call("EXISTS", q.keys.prefix .. "wake:" .. found.client)
  if not redis.call("ZSCORE", canceled_key, job) then
    q.canceling = q.canceling + 1
  end
  redis.call("ZADD", canceled_key, time.NEVER, job)
  queue.save(q)
  waking.tell(q, found.client, "cancel:" .. job)
  return requests.remember(client_key, request, { "canceling" })
end
-- Before its action is looked at: one that ends with it asks whether anything else of the tenant is left.
if found.state == "delayed" then
  tenant.delayed, q.delayed = tenant.delayed - 1, q.delayed - 1
else
  tenant.waiting, q.waiting = tenant.waiting - 1, q.waiting - 1
end
local action = actions.of_lane(q, found.tenant, found.lane, found.sequence)
if action then
  actions.cancel_one(action, found.state, found.sequence)
  endings.judge(q)
  actions.close(q)
end
-- An ordered lane may go on with its next job.
local is_freed = found.state == "delayed" and places.is_ordered(found.lane)
local sleeper = (is_freed or duties.are_added(q)) and waking.find(q)
if found.state == "delayed" then
  if is_freed then
    fronts.release(q, tenant, lanes.open(q, tenant, found.level, found.lane), job)
    standing.settle(q, tenant)
  end
  redis.call("ZREM", delayed_key, job)
  redis.call("HDEL", aside_key, job)
  redis.call("ZADD", canceled_key, q.now + q.settings.keep_ids, job)
else
  tenant.marks = tenant.marks + 1
  if not action then
    redis.call("ZADD", canceled_key, time.NEVER, job)
  end
end
queue.count(q, "canceled", 1)
lanes.save(q)
actions.save(q)
tenants.save(q)
queue.save(q)
if sleeper then
  waking.wake(q, sleeper)
end
return requests.remember(client_key, request, { "canceled" })
