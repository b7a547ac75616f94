#!lua flags=allow-oom
-- Charges what a running job costs once more to every limit it stands under, just before it calls the upstream: all or
-- none.
-- Replies {"admitted", fresh}, {"wait", µs} until they can all grant, {"stale"} if the job is no longer the caller's,
-- or {"unregistered"}.
local time = require "time"
local queue = require "queue"
local limits = require "limits"
local limited = require "limited"
local places = require "places"
local record = require "record"
local requests = require "requests"
local queue_key = KEYS[1] -- hash: the queue's state
local ready_high_key = KEYS[2] -- zset: tenant → score
local ready_normal_key = KEYS[3] -- zset: tenant → score
local ready_low_key = KEYS[4] -- zset: tenant → score
local parked_key = KEYS[5] -- zset: tenant → instant
local unparking_key = KEYS[6] -- zset: tenants parked under limits that have changed
local limits_key = KEYS[7] -- hash: state of the queue's limits
local running_key = KEYS[8] -- hash: tenant → jobs that run
local client_key = KEYS[9] -- hash: replies to the client's last requests
local group_limits_key = KEYS[10] -- hash: limits shared with other queues
local group_queues_key = KEYS[11] -- zset: queues of the group
local now_given = ARGV[1] -- µs; empty: the server's time
local request = tonumber(ARGV[2]) -- number of the client's request
local server = ARGV[3] -- id of the server the client is connected to
local fence = ARGV[4] -- of the job's claim
local job = ARGV[5] -- its key
local standing = ARGV[6] -- the level it stood on


local known = requests.recall(client_key, request)
if known then
  return known
end
local now = time.now(now_given)
local prefix = string.sub(queue_key, 1, -6)
local q = queue.open({
  prefix = prefix, queue = queue_key, limits = limits_key, parked = parked_key, unparking = unparking_key,
  running = running_key, group_limits = group_limits_key, group_queues = group_queues_key,
  ready = { high = ready_high_key, normal = ready_normal_key, low = ready_low_key },
}, now)
if not q then
  return { "unregistered" }
end
local held = redis.call("HGET", prefix .. "claim:" .. fence, job)
if not held then
  return { "stale" }
end
local text, _, members = record.of_claimed(held)
local cost = record.cost(text)
queue.notice_server(q, server)
if not limits.open(q) then
  return { "unregistered" }
end
local _, _, _, name = places.parse(job)
local tenant = limited.load(q, name)
local latest, last, last_scope = 0, nil, nil
for _, scope in ipairs({ "queue", standing, "tenant" }) do
  local states = scope == "tenant" and limits.of_tenant(q, tenant) or q.limits[scope]
  local instant, state = limits.further_instant(states, scope, cost, now, members)
  if instant > latest then
    latest, last, last_scope = instant, state, scope
  end
end
local reply
if latest > 0 then
  limits.deny(q, last_scope, last)
  reply = { "wait", latest - now }
else
  -- Charged under a fence of its own, so that nothing the job's claim gives back can be mistaken for it.
  local keeps = limits.charge_again(q, tenant, standing, cost, queue.next_fence(q), members)
  reply = { "admitted", keeps or 0 }
end
limited.save(q, tenant)
limits.save(q)
queue.save(q)
return requests.remember(client_key, request, reply)
