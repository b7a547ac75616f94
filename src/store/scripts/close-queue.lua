#!lua flags=allow-oom
-- Closes the place of a queue that lives in another group now, if no job is left there: whoever still comes here is
-- answered "unregistered", looks where the queue lives, and finds out. What it counted stays.
-- Replies {"closed"}, also where no queue was, or {"open", jobs}.
local time = require "time"
local queue = require "queue"
local queue_key = KEYS[1] -- hash: the queue's state
local group_queues_key = KEYS[2] -- zset: queues of the group
local now_given = ARGV[1] -- µs; empty: the server's time

local q = queue.open({ queue = queue_key }, time.now(now_given))
if not q then
  return { "closed" }
end
local jobs = q.waiting + q.delayed + q.running
if jobs > 0 then
  return { "open", jobs }
end
redis.call("HDEL", queue_key, "settings")
redis.call("ZREM", group_queues_key, string.match(queue_key, "}:(.*):queue$"))
return { "closed" }
