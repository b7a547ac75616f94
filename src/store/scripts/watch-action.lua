#!lua flags=allow-oom
-- Tells a client for a while when an action changes: a message on the list it waits on, at most ten times a second.
-- Replies {"watched"} or {"unknown"}.
local time = require "time"
local queue_key = KEYS[1] -- hash: the queue's state
local now_given = ARGV[1] -- µs; empty: the server's time
local action = ARGV[2] -- tenant:name
local client = ARGV[3] -- who wants to know
local watch_for = tonumber(ARGV[4]) -- µs; 0: no longer

local MOST = 1000 -- clients told of one action; they are processes, not readers

local now = time.now(now_given)
local key = string.sub(queue_key, 1, -6) .. "action:" .. action
local found = redis.call("HMGET", key, "state", "watchers")
if not found[1] then
  return { "unknown" }
end
local watchers, count = {}, 0
for watcher, until_us in pairs(found[2] and cmsgpack.unpack(found[2]) or {}) do
  if until_us > now and watcher ~= client and count < MOST then
    watchers[watcher], count = until_us, count + 1
  end
end
if watch_for > 0 then
  watchers[client], count = now + watch_for, count + 1
end
if count > 0 then
  redis.call("HSET", key, "watchers", cmsgpack.pack(watchers))
else
  redis.call("HDEL", key, "watchers")
end
return { "watched" }
