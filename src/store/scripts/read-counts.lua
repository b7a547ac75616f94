#!lua flags=no-writes
-- The counts of the queue. Replies {"counts", waiting, delayed, running, statistics}, the last being all fields of the
-- queue's hash, name and value by turns; or {"unregistered"}.
local time = require "time"
local queue = require "queue"
local queue_key = KEYS[1] -- hash: the queue's state
local now_given = ARGV[1] -- µs; empty: the server's time

local q = queue.open({ queue = queue_key }, time.now(now_given))
if not q then
  return { "unregistered" }
end
return { "counts", q.waiting, q.delayed, q.running, redis.call("HGETALL", queue_key) }
