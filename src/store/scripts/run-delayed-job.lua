#!lua flags=allow-oom
-- Makes one delayed job due now; the next claim puts it at the front of its lane.
-- Replies {"due"}, {state} for a job that is not delayed, {"unknown"}, {"unregistered"}, or {"again", leases_from}:
-- it may run under a lease further on.
local time = require "time"
local queue = require "queue"
local finding = require "finding"
local waking = require "waking"
local queue_key = KEYS[1] -- hash: the queue's state
local delayed_key = KEYS[2] -- zset: job → instant
local aside_key = KEYS[3] -- hash: job → record
local leases_key = KEYS[4] -- zset: fence:client → when the lease runs out
local dead_jobs_key = KEYS[5] -- hash: job → reason and record
local canceled_key = KEYS[6] -- zset: job → when the mark may be forgotten
local ids_key = KEYS[7] -- hash: period → ids given in it
local idle_key = KEYS[8] -- zset: client → until when it is known to wait
local now_given = ARGV[1] -- µs; empty: the server's time
local job_given = ARGV[2] -- the job's key, or empty
local tenant_given = ARGV[3] -- for a given id: its tenant
local action_given = ARGV[4] -- for a given id: the name of its action, or empty
local digest = ARGV[5] -- for a given id: its digest, or empty
local leases_from = ARGV[6] -- where to go on in the leases; "-inf" at first

local q = queue.open({
  prefix = string.sub(queue_key, 1, -6), queue = queue_key, delayed = delayed_key, aside = aside_key,
  leases = leases_key, dead_jobs = dead_jobs_key, canceled = canceled_key, ids = ids_key, idle = idle_key,
}, time.now(now_given))
if not q then
  return { "unregistered" }
end
local found = finding.at(q, job_given, tenant_given, action_given, digest, leases_from)
if found and found.state == "again" then
  return { "again", found.cursor }
end
if not found or found.state ~= "delayed" then
  return { found and found.state or "unknown" }
end
local sleeper = waking.find(q)

if tonumber(found.due) > q.now then
  redis.call("ZADD", delayed_key, "XX", string.format("%d", q.now), found.job)
end
if sleeper then
  waking.wake(q, sleeper)
end
return { "due" }
