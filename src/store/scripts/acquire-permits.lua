#!lua flags=allow-oom
-- Charges limits of a queue, and of one of its levels, for code that has no job, many callers at once: each gets all it
-- asks for or nothing. Replies as acquire-shared does.
local time = require "time"
local queue = require "queue"
local limits = require "limits"
local acquiring = require "acquiring"
local requests = require "requests"
local queue_key = KEYS[1] -- hash: the queue's state
local limits_key = KEYS[2] -- hash: state of the queue's limits
local ready_high_key = KEYS[3] -- zset: tenant → score
local ready_normal_key = KEYS[4] -- zset: tenant → score
local ready_low_key = KEYS[5] -- zset: tenant → score
local parked_key = KEYS[6] -- zset: tenant → instant
local unparking_key = KEYS[7] -- zset: tenants parked under limits that have changed
local client_key = KEYS[8] -- hash: replies to the client's last requests
local group_limits_key = KEYS[9] -- hash: limits shared with other queues
local group_queues_key = KEYS[10] -- zset: queues of the group
local now_given = ARGV[1] -- µs; empty: the server's time
local request = tonumber(ARGV[2]) -- number of the client's request
local server = ARGV[3] -- id of the server the client is connected to
local known_since = ARGV[4] -- when the store came to know the queue, as the caller was told; empty: it does not say
local level = ARGV[5] -- of the callers
local stale_fence = tonumber(ARGV[6]) -- of grants that came too late to be used
local stale_permits = tonumber(ARGV[7]) -- how many these are
local stale_members = ARGV[8] -- of pools that had granted them: "<limit>=<member>=<permits>", joined by &
local names = tonumber(ARGV[9]) -- how many limits
local asked, asked_from = ARGV, 10 -- list: the limits, then pairs: callers in a row, permits of each

local known = requests.recall(client_key, request)
if known then
  return known
end
local q = queue.open({
  prefix = string.sub(queue_key, 1, -6), queue = queue_key, limits = limits_key, parked = parked_key,
  unparking = unparking_key, ready = { high = ready_high_key, normal = ready_normal_key, low = ready_low_key },
  group_limits = group_limits_key, group_queues = group_queues_key,
}, time.now(now_given))
if not q or not queue.is_as_registered(q, known_since) then
  return { "unregistered" }
end
queue.notice_server(q, server)
if not limits.open(q) then
  return { "unregistered" }
end
local fence = queue.next_fence(q)
local stale = { fence = stale_fence, permits = stale_permits, members = stale_members }
local reply = acquiring.run(q, level, fence, stale, asked, asked_from, names)
if reply[1] == "answers" then
  -- As after a job that costs more: a bucket can be charged beyond its burst from now on.
  for at = asked_from + names + 1, #asked, 2 do
    if not q.has_costs and tonumber(asked[at]) > 1 then
      redis.call("HSET", queue_key, "costs", "1")
      q.has_costs = true
    end
  end
  limits.save(q)
  queue.save(q)
end
return requests.remember(client_key, request, reply)
