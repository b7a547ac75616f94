#!lua flags=allow-oom
-- Takes one letter out of the dead letters: its job runs again as if fresh, or is discarded for good
-- (and is known as canceled as long as its id is).
-- Replies {"retried"}, {"discarded"} or {"unknown"}.
local time = require "time"
local queue = require "queue"
local opening = require "opening"
local tenants = require "tenants"
local places = require "places"
local record = require "record"
local actions = require "actions"
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
local dead_key = KEYS[12] -- zset: job → when it became a dead letter
local dead_jobs_key = KEYS[13] -- hash: job → reason and record
local idle_key = KEYS[14] -- zset: client → until when it is known to wait
local client_key = KEYS[15] -- hash: replies to the client's last requests
local running_key = KEYS[16] -- hash: tenant → jobs that run
local canceled_key = KEYS[17] -- zset: job → when the mark may be forgotten
local events_key = KEYS[18] -- stream: what happened
local duties_key = KEYS[19] -- zset: duty → when it may be taken
local duty_tries_key = KEYS[20] -- hash: duty → how often it was tried in vain
local now_given = ARGV[1] -- µs; empty: the server's time
local request = tonumber(ARGV[2]) -- number of the client's request
local job = ARGV[3] -- its key
local retries = tonumber(ARGV[4]) -- 1: run it again, 0: discard it

local known = requests.recall(client_key, request)
if known then
  return known
end
local q = opening.open(
  time.now(now_given), queue_key, { ready_high_key, ready_normal_key, ready_low_key },
  { since_high_key, since_normal_key, since_low_key }, parked_key, unparking_key,
  { idle = idle_key, running = running_key, events = events_key, duties = duties_key, duty_tries = duty_tries_key }
)
local letter = q and redis.call("HGET", dead_jobs_key, job)
if not letter then
  return { "unknown" }
end
local text = string.match(letter, "^[^\n]*\n(.*)$")
local level, lane, sequence, name = places.parse(job)
if retries == 1 then
  local tenant = tenants.load(q, name)
  local sleeper = waking.find(q)
  local action, revived = actions.of_lane(q, name, lane, sequence), job
  if action and (actions.is_over(action) or action.state == "AGGREGATING") then
    -- Its action has ended and stays as it ended: the job runs again by itself.
    revived = string.format("%s:default:0%.0f:%s", level, queue.tick(q), name)
  elseif action then
    actions.move(action, "failed", "delayed", 1)
    actions.close(q)
  end
  redis.call("EXISTS", aside_key)
  -- Due now: the next claim puts it at the front of its lane.
  redis.call("HSET", aside_key, revived, record.with_history(text, 0, 0, 0, 0, "retry", ""))
  if revived ~= job then
    -- Under its old key it would seem to have succeeded.
    redis.call("ZADD", canceled_key, string.format("%d", q.now + q.settings.keep_ids), job)
  end
  redis.call("ZADD", delayed_key, q.now, revived)
  tenant.delayed, q.delayed, tenant.total = tenant.delayed + 1, q.delayed + 1, tenant.total + 1
  queue.count(q, "revived", 1)
  actions.save(q)
  tenants.save(q)
  if sleeper then
    waking.wake(q, sleeper)
  end
else
  queue.count(q, "discarded", 1)
  -- Else it would seem to have succeeded: a job that is nowhere has.
  redis.call("ZADD", canceled_key, string.format("%d", q.now + q.settings.keep_ids), job)
end
redis.call("ZREM", dead_key, job)
redis.call("HDEL", dead_jobs_key, job)
queue.save(q)
return requests.remember(client_key, request, { retries == 1 and "retried" or "discarded" })
