#!lua flags=no-writes
-- Dead letters, newest first, from a position on, without those past their time. Replies {"letters", total, jobs}: job,
-- letter, for each.
local time = require "time"
local queue = require "queue"
local expiring = require "expiring"
local queue_key = KEYS[1] -- hash: the queue's state
local dead_key = KEYS[2] -- zset: job → when it became a dead letter
local dead_jobs_key = KEYS[3] -- hash: job → reason and record
local now_given = ARGV[1] -- µs; empty: the server's time
local from = tonumber(ARGV[2]) -- position
local count = tonumber(ARGV[3]) -- at most

local q = queue.open({ queue = queue_key }, time.now(now_given))
local after = q and string.format("(%d", expiring.instant(q)) or "-inf"
local jobs = redis.call("ZREVRANGEBYSCORE", dead_key, "+inf", after, "LIMIT", from, count)
local found = {}
if #jobs > 0 then
  local letters = redis.call("HMGET", dead_jobs_key, unpack(jobs))
  for i, job in ipairs(jobs) do
    found[#found + 1] = job
    found[#found + 1] = letters[i] or ""
  end
end
return { "letters", redis.call("ZCOUNT", dead_key, after, "+inf"), found }
