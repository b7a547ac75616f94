#!lua flags=no-writes
-- The queue's settings and pauses. Replies {"settings", declared, changed, paused, paused:high, paused:normal,
-- paused:low}: JSON, JSON ("{}": nothing was changed), and since when in µs as text ("0": it is not). Or
-- {"unregistered"}.
local time = require "time"
local queue = require "queue"
local queue_key = KEYS[1] -- hash: the queue's state
local settings_key = KEYS[2] -- hash: what is declared, what was changed
local now_given = ARGV[1] -- µs; empty: the server's time

local q = queue.open({ queue = queue_key }, time.now(now_given))
if not q then
  return { "unregistered" }
end
local stored = redis.call("HMGET", settings_key, "declared", "changed")
local reply = { "settings", stored[1] or "{}", stored[2] or "{}" }
for _, holder in ipairs({ q, q.at.high, q.at.normal, q.at.low }) do
  reply[#reply + 1] = string.format("%.0f", holder.paused or 0)
end
return reply
