#!lua flags=no-writes
-- What is known of one tenant: its hash, and what only the queue knows of it.
-- Replies {"tenant", fields, parked until (µs or ""), virtual high, virtual normal, virtual low}, or {"unregistered"}.
local time = require "time"
local queue = require "queue"
local queue_key = KEYS[1] -- hash: the queue's state
local parked_key = KEYS[2] -- zset: tenant → instant
local now_given = ARGV[1] -- µs; empty: the server's time
local name = ARGV[2] -- the tenant

local q = queue.open({ queue = queue_key }, time.now(now_given))
if not q then
  return { "unregistered" }
end
local fields = redis.call("HGETALL", string.sub(queue_key, 1, -6) .. "tenant:" .. name)
local parked = redis.call("ZSCORE", parked_key, name) or ""
local function text(number)
  return string.format("%.6f", number)
end
return {
  "tenant", fields, parked, text(q["virtual:high"]), text(q["virtual:normal"]), text(q["virtual:low"]),
}
