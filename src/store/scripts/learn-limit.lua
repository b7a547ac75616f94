#!lua flags=allow-oom
-- Tells a limit of a queue, or of one of its levels, what an upstream answered to a call that was no job.
-- Replies {"learnt"}, {"unknown"} when no such limit is attached, or {"unregistered"}.
local time = require "time"
local queue = require "queue"
local limits = require "limits"
local meters = require "meters"
local teaching = require "teaching"
local waking = require "waking"
local requests = require "requests"
local group = require "group"
local queue_key = KEYS[1] -- hash: the queue's state
local limits_key = KEYS[2] -- hash: state of the queue's limits
local ready_high_key = KEYS[3] -- zset: tenant → score
local ready_normal_key = KEYS[4] -- zset: tenant → score
local ready_low_key = KEYS[5] -- zset: tenant → score
local parked_key = KEYS[6] -- zset: tenant → instant
local unparking_key = KEYS[7] -- zset: tenants parked under limits that have changed
local idle_key = KEYS[8] -- zset: client → until when it is known to wait
local client_key = KEYS[9] -- hash: replies to the client's last requests
local group_limits_key = KEYS[10] -- hash: limits shared with other queues
local group_queues_key = KEYS[11] -- zset: queues of the group
local now_given = ARGV[1] -- µs; empty: the server's time
local request = tonumber(ARGV[2]) -- number of the client's request
local server = ARGV[3] -- id of the server the client is connected to
local known_since = ARGV[4] -- when the store came to know the queue, as the caller was told; empty: it does not say
local name = ARGV[5] -- the limit
local level = ARGV[6] -- whose limits are looked at beside the queue's
local member = ARGV[7] -- of a pool, that granted the call; else empty
local permits = tonumber(ARGV[8]) -- of the call
local fence = ARGV[9] -- of its grant; empty: unknown
local pushed = ARGV[10] -- µs for which the upstream pushed back; 0: it did not say; empty: it did not push back
local reading = ARGV[11] -- "remaining:µs until it starts over:limit" by its word, or empty

local known = requests.recall(client_key, request)
if known then
  return known
end
local q = queue.open({
  prefix = string.sub(queue_key, 1, -6), queue = queue_key, limits = limits_key, parked = parked_key,
  unparking = unparking_key, ready = { high = ready_high_key, normal = ready_normal_key, low = ready_low_key },
  idle = idle_key, group_limits = group_limits_key, group_queues = group_queues_key,
}, time.now(now_given))
if not q or not queue.is_as_registered(q, known_since) then
  return { "unregistered" }
end
queue.notice_server(q, server)
if not limits.open(q) then
  return { "unregistered" }
end

-- As acquire-permits finds it.
local state = meters.named({ q.limits.queue, q.limits[level] }, name)
if not state then
  return requests.remember(client_key, request, { "unknown" })
end
teaching.learn(q, state, member, permits, fence == "" and q.now or tonumber(fence), pushed, reading)
-- Nobody is parked under a limit of the queue or a level: whoever claims next asks it again.
local sleeper = q.waiting > 0 and state.meter.available(state) > 0 and waking.find(q)
if q.group then
  group.close(q)
end

limits.save(q)
queue.save(q)
if sleeper then
  waking.wake(q, sleeper)
end
return requests.remember(client_key, request, { "learnt" })
