#!lua flags=allow-oom
-- Tells a shared limit what an upstream answered to a call that was no job.
-- Replies {"learnt"} or {"unregistered"}.
local time = require "time"
local alone = require "alone"
local group = require "group"
local teaching = require "teaching"
local requests = require "requests"
local group_limits_key = KEYS[1] -- hash: limits shared by the queues of the group
local group_queues_key = KEYS[2] -- zset: queues of the group
local client_key = KEYS[3] -- hash: replies to the client's last requests
local now_given = ARGV[1] -- µs; empty: the server's time
local request = tonumber(ARGV[2]) -- number of the client's request
local server = ARGV[3] -- id of the server the client is connected to
local known_since = ARGV[4] -- when the store came to know the group, as the caller was told; empty: it does not say
local member = ARGV[5] -- of a pool, that granted the call; else empty
local permits = tonumber(ARGV[6]) -- of the call
local fence = ARGV[7] -- of its grant; empty: unknown
local pushed = ARGV[8] -- µs for which the upstream pushed back; 0: it did not say; empty: it did not push back
local reading = ARGV[9] -- "remaining:µs until it starts over:limit" by its word, or empty
local names, names_from = ARGV, 10 -- list: the limit

local known = requests.recall(client_key, request)
if known then
  return known
end
local now = time.now(now_given)
local q = alone.open(group_limits_key, group_queues_key, names, names_from, 1, server, now, known_since)
if not q then
  return { "unregistered" }
end
teaching.learn(q, q.limits.queue[1], member, permits, fence == "" and now or tonumber(fence), pushed, reading)
group.close(q)

group.save(q)
return requests.remember(client_key, request, { "learnt" })
