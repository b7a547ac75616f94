#!lua flags=allow-oom
-- What became of a duty: "renewed" (it takes longer), "again" after a while, or "done". The aggregate of an action is
-- stored with the duty that made it, and completes the action; without one the action has failed.
-- Replies {"settled", fence}, {"lost"} when somebody else has it by now, or {"unregistered"}.
local time = require "time"
local queue = require "queue"
local actions = require "actions"
local tenants = require "tenants"
local requests = require "requests"
local queue_key = KEYS[1] -- hash: the queue's state
local duties_key = KEYS[2] -- zset: duty → when it may be taken
local duty_tries_key = KEYS[3] -- hash: duty → how often it was tried in vain
local events_key = KEYS[4] -- stream: what happened
local client_key = KEYS[5] -- hash: replies to the client's last requests
local running_key = KEYS[6] -- hash: tenant → jobs that run
local now_given = ARGV[1] -- µs; empty: the server's time
local request = tonumber(ARGV[2]) -- number of the client's request
local duty = ARGV[3] -- its name
local fence = ARGV[4] -- under which it was taken
local outcome = ARGV[5] -- renewed, again or done
local after = tonumber(ARGV[6]) -- µs: the lease from now, or when to try again
local aggregate = ARGV[7] -- JSON of an action's aggregate; empty when there is none
local error = ARGV[8] -- why there is none; empty otherwise

local known = requests.recall(client_key, request)
if known then
  return known
end
local q = queue.open({
  prefix = string.sub(queue_key, 1, -6), queue = queue_key, events = events_key, duties = duties_key,
  duty_tries = duty_tries_key, running = running_key,
}, time.now(now_given))
if not q then
  return { "unregistered" }
end
if tonumber(redis.call("ZSCORE", duties_key, duty) or 0) ~= tonumber(fence) then
  return { "lost" }
end
local due = string.format("%d", q.now + after)
local kind, tenant, name = string.match(duty, "^(%l+):([^:]*):?(.*)$")
local action = outcome == "done" and kind == "aggregate" and actions.load(q, tenant, name)
local is_made = action and action.state == "AGGREGATING"
if is_made then
  actions.transition(q, action, error == "" and "COMPLETED" or "FAILED")
  actions.close(q)
end

if outcome == "done" then
  redis.call("ZREM", duties_key, duty)
  redis.call("HDEL", duty_tries_key, duty)
else
  redis.call("ZADD", duties_key, due, duty)
  if outcome == "again" then
    redis.call("HINCRBY", duty_tries_key, duty, 1)
  end
end
if is_made then
  redis.call("HSET", action.key, error == "" and "aggregate" or "error", error == "" and aggregate or error)
  actions.save(q)
  tenants.save(q)
  queue.save(q)
end
return requests.remember(client_key, request, { "settled", due })
