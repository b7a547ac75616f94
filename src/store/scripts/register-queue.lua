#!lua flags=allow-oom
-- Makes the queue known with the settings its code declares, and the limits it shares with other queues; what operators
-- changed while running stays on top.
-- Replies {"registered"}.
local time = require "time"
local queue = require "queue"
local settings = require "settings"
local queue_key = KEYS[1] -- hash: the queue's state
local settings_key = KEYS[2] -- hash: what is declared, what was changed
local group_limits_key = KEYS[3] -- hash: limits shared with other queues
local group_queues_key = KEYS[4] -- zset: queue of the group → when it last waited for an event
local now_given = ARGV[1] -- µs; empty: the server's time
local server = ARGV[2] -- id of the server the client is connected to
local declared = ARGV[3] -- JSON: values, limits
local is_again = tonumber(ARGV[4]) -- 1: the caller knew this queue before, so the store has lost it

local changed = redis.call("HGET", settings_key, "changed") or "{}"
local is_new = redis.call("EXISTS", queue_key) == 0
local wanted = cjson.decode(declared)
local packed = settings.compile(wanted, cjson.decode(changed))
redis.call("HSET", settings_key, "declared", declared)
redis.call("HSET", queue_key, "settings", packed)
if is_new then
  redis.call("HSET", queue_key, "server", server)
  if is_again == 1 then
    -- What was granted is gone with the store: limits close as after a restart.
    local q = queue.open({ queue = queue_key }, time.now(now_given))
    q.restarts, q.restarted_at = 1, q.now
    queue.save(q)
  end
end
if wanted.shared then
  local register = require "register_shared"
  local own = string.match(queue_key, "}:(.*):queue$")
  register.limits(group_limits_key, wanted.shared, server, time.now(now_given), is_new and is_again == 1)
  redis.call("ZADD", group_queues_key, "NX", "0", own)
end
return { "registered" }
