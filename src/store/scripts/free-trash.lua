#!lua flags=allow-oom
-- Frees records that stand aside for a list that was dropped, a bounded number at once. The jobs are known as canceled
-- as long as ids are.
-- Replies {"freed", left} or {"unregistered"}.
local time = require "time"
local queue = require "queue"
local queue_key = KEYS[1] -- hash: the queue's state
local aside_key = KEYS[2] -- hash: job → record
local canceled_key = KEYS[3] -- zset: job → when the mark may be forgotten
local now_given = ARGV[1] -- µs; empty: the server's time
local trash = ARGV[2] -- name of the dropped list
local most = tonumber(ARGV[3]) -- records

local prefix = string.sub(queue_key, 1, -6)
local q = queue.open({ prefix = prefix, queue = queue_key }, time.now(now_given))
if not q then
  return { "unregistered" }
end
local key = prefix .. "trash:" .. trash
local jobs = redis.call("LRANGE", key, 0, most - 1)
if #jobs > 0 then
  local forgotten_at = string.format("%d", q.now + q.settings.keep_ids)
  for _, job in ipairs(jobs) do
    redis.call("ZADD", canceled_key, forgotten_at, job)
  end
  redis.call("HDEL", aside_key, unpack(jobs))
  redis.call("LTRIM", key, #jobs, -1)
end
return { "freed", redis.call("LLEN", key) }
