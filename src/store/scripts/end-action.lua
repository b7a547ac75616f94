#!lua flags=allow-oom
-- Ends an action by hand: seals it, so that it completes when its last job has ended, or cancels it now. Or sees
-- whether it is over by its counts, when the audit has put them right.
-- Replies {"done", state}, {"unknown"} or {"unregistered"}. An action that has ended stays as it ended.
local time = require "time"
local queue = require "queue"
local opening = require "opening"
local tenants = require "tenants"
local lanes = require "lanes"
local actions = require "actions"
local endings = require "endings"
local duties = require "duties"
local requests = require "requests"
local waking = require "waking"
local moves = require "moves"
local queue_key = KEYS[1] -- hash: the queue's state
local ready_high_key = KEYS[2] -- zset: tenant → score
local ready_normal_key = KEYS[3] -- zset: tenant → score
local ready_low_key = KEYS[4] -- zset: tenant → score
local since_high_key = KEYS[5] -- zset: tenant → able to run since
local since_normal_key = KEYS[6] -- zset: tenant → able to run since
local since_low_key = KEYS[7] -- zset: tenant → able to run since
local parked_key = KEYS[8] -- zset: tenant → instant
local unparking_key = KEYS[9] -- zset: tenants parked under limits that have changed
local running_key = KEYS[10] -- hash: tenant → jobs that run
local leases_key = KEYS[11] -- zset: fence:client → when the lease runs out
local aside_key = KEYS[12] -- hash: job → record
local idle_key = KEYS[13] -- zset: client → until when it is known to wait
local client_key = KEYS[14] -- hash: replies to the client's last requests
local events_key = KEYS[15] -- stream: what happened
local duties_key = KEYS[16] -- zset: duty → when it may be taken
local duty_tries_key = KEYS[17] -- hash: duty → how often it was tried in vain
local backlog_key = KEYS[18] -- zset: tenant → binary digits of how many of its jobs wait
local now_given = ARGV[1] -- µs; empty: the server's time
local request = tonumber(ARGV[2]) -- number of the client's request
local tenant = ARGV[3] -- whose it is
local name = ARGV[4] -- of the action
local verb = ARGV[5] -- seal, cancel, or judge: whether it is over by its counts, which somebody has put right

local known = requests.recall(client_key, request)
if known then
  return known
end
local q = opening.open(
  time.now(now_given), queue_key, { ready_high_key, ready_normal_key, ready_low_key },
  { since_high_key, since_normal_key, since_low_key }, parked_key, unparking_key,
  { running = running_key, leases = leases_key, aside = aside_key, idle = idle_key, events = events_key,
    backlog = backlog_key,
    duties = duties_key, duty_tries = duty_tries_key }
)
if not q then
  return { "unregistered" }
end
local action = actions.load(q, tenant, name)
if not action then
  return { "unknown" }
end
if verb == "cancel" and not actions.is_over(action) then
  endings.end_early(q, action, "CANCELED")
elseif verb == "seal" and not actions.is_closed(action) then
  endings.seal(q, action)
  endings.judge(q)
elseif verb == "judge" then
  action.changed = true
  endings.judge(q)
end
actions.close(q)
local sleeper = duties.are_added(q) and waking.find(q)
if q.unset_aside then
  moves.close(q)
end

lanes.save(q)
if q.unset_aside then
  moves.save(q)
end
actions.save(q)
tenants.save(q)
queue.save(q)
if sleeper then
  waking.wake(q, sleeper)
end
return requests.remember(client_key, request, { "done", action.state })
