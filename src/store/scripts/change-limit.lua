#!lua flags=allow-oom
-- Changes a shared limit for all queues of its group at once, and wakes one process of each.
-- Replies {"changed"} or {"unregistered"}.
local time = require "time"
local group = require "group"
local shared_rules = require "shared_rules"
local group_limits_key = KEYS[1] -- hash: limits shared by the queues of the group
local group_queues_key = KEYS[2] -- zset: queues of the group
local now_given = ARGV[1] -- µs; empty: the server's time
local name = ARGV[2] -- the limit
local rule_json = ARGV[3] -- JSON: the rule
local is_declared = tonumber(ARGV[4]) -- 1: it is what the code declares, so that later code may declare otherwise

-- Further queues look for themselves, within seconds.
local WOKEN = 64

local before = redis.call("HGET", group_limits_key, name .. "/rule")
if not before then
  return { "unregistered" }
end
local rule = cjson.decode(rule_json)
local q = {
  keys = { group_limits = group_limits_key, group_queues = group_queues_key }, now = time.now(now_given),
  group = { woken = {} },
}
group.wake_all(q, WOKEN)

shared_rules.set(group_limits_key, name, rule, before)
if is_declared == 1 then
  redis.call("HDEL", group_limits_key, name .. "/changed")
else
  redis.call("HSET", group_limits_key, name .. "/changed", "1")
end
group.wake(q)
return { "changed" }
