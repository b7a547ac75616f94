#!lua flags=allow-oom
-- Takes back an action to which nobody has sent anything: whoever made it was refused its jobs. Nothing of it stays,
-- and its name is free again.
-- Replies {"gone"}, {"kept"} when there is none or it has received something or is closed, or {"unregistered"}.
local time = require "time"
local queue = require "queue"
local actions = require "actions"
local duties = require "duties"
local events = require "events"
local requests = require "requests"
local queue_key = KEYS[1] -- hash: the queue's state
local client_key = KEYS[2] -- hash: replies to the client's last requests
local actions_key = KEYS[3] -- zset: tenant:name → when the action was made
local events_key = KEYS[4] -- stream: what happened
local duties_key = KEYS[5] -- zset: duty → when it may be taken
local duty_tries_key = KEYS[6] -- hash: duty → how often it was tried in vain
local now_given = ARGV[1] -- µs; empty: the server's time
local request = tonumber(ARGV[2]) -- number of the client's request
local tenant = ARGV[3] -- whose it is
local name = ARGV[4] -- of the action

local known = requests.recall(client_key, request)
if known then
  return known
end
local q = queue.open({
  prefix = string.sub(queue_key, 1, -6), queue = queue_key, events = events_key, duties = duties_key,
  duty_tries = duty_tries_key,
}, time.now(now_given))
if not q then
  return { "unregistered" }
end
local action = actions.load(q, tenant, name)
if not action or action.received > 0 or actions.is_closed(action) then
  return { "kept" }
end
local own_key = q.keys.prefix .. "actions:" .. tenant
redis.call("EXISTS", own_key)
duties.drop(q, duties.name("seal", action))
-- Whoever has seen that it was made sees that it is no more. Its webhook is not told: whoever made it knows.
events.add(q, "action.canceled", { "tenant", tenant, "action", name })

redis.call("DEL", action.key)
redis.call("ZREM", actions_key, tenant .. ":" .. name)
redis.call("ZREM", own_key, name)
queue.save(q)
return requests.remember(client_key, request, { "gone" })
