#!lua flags=no-writes
-- Schedules by their names. Replies {"schedules", now, since, row, …}: `since` is when the queue got its first, empty
-- if it has had none; an empty row for one that is not there. Or {"unregistered"}.
local time = require "time"
local queue = require "queue"
local schedules = require "schedules"
local queue_key = KEYS[1] -- hash: the queue's state
local now_given = ARGV[1] -- µs; empty: the server's time
local names, names_from = ARGV, 2 -- list: of the schedules

local q = queue.open({ prefix = string.sub(queue_key, 1, -6), queue = queue_key }, time.now(now_given))
if not q then
  return { "unregistered" }
end
local since = redis.call("HGET", queue_key, "schedules_since") or ""
local reply = { "schedules", string.format("%d", q.now), since }
for i = names_from, #names do
  local schedule = schedules.load(q, names[i])
  reply[#reply + 1] = schedule and schedules.row(schedule) or {}
end
return reply
