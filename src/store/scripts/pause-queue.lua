#!lua flags=allow-oom
-- Pauses or resumes the queue or one of its levels. What waits keeps its place.
-- Replies {"paused"}, {"resumed"} or {"unregistered"}.
local time = require "time"
local queue = require "queue"
local waking = require "waking"
local queue_key = KEYS[1] -- hash: the queue's state
local idle_key = KEYS[2] -- zset: client → until when it is known to wait
local now_given = ARGV[1] -- µs; empty: the server's time
local level = ARGV[2] -- empty: the whole queue
local pauses = tonumber(ARGV[3]) -- 1: pause, 0: resume

local now = time.now(now_given)
local q = queue.open({ prefix = string.sub(queue_key, 1, -6), queue = queue_key, idle = idle_key }, now)
if not q then
  return { "unregistered" }
end
local holder = level == "" and q or q.at[level]
local sleeper = waking.find(q)
if pauses == 1 then
  if not holder.paused then
    holder.paused = now
    q.pauses_changed = true
  end
  queue.save(q)
  return { "paused" }
end
if holder.paused then
  holder.paused, holder.resumed = nil, now
  q.pauses_changed = true
end
queue.save(q)
if sleeper then
  waking.wake(q, sleeper)
end
return { "resumed" }
