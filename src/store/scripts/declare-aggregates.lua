#!lua flags=allow-oom
-- Says for a while that a client makes the aggregates of some types, or that it does not any more. Actions of these
-- types that are made from now on keep their results, and wait for an aggregate before they complete.
-- Replies {"declared", due}, `due` 1 when a duty is, or {"unregistered"}.
local time = require "time"
local queue_key = KEYS[1] -- hash: the queue's state
local duties_key = KEYS[2] -- zset: duty → when it may be taken
local aggregators_key = KEYS[3] -- zset: client:type → until when it makes aggregates of that type
local now_given = ARGV[1] -- µs; empty: the server's time
local client = ARGV[2] -- whose they are
local hold_for = tonumber(ARGV[3]) -- µs; 0: no longer
local types, types_from = ARGV, 4 -- list: types

local now = time.now(now_given)
if redis.call("EXISTS", queue_key) == 0 then
  return { "unregistered" }
end
local kept_for = redis.call("PTTL", aggregators_key)
local due = redis.call("ZCOUNT", duties_key, "-inf", string.format("%d", now)) > 0 and 1 or 0

for i = types_from, #types do
  local member = client .. ":" .. types[i]
  if hold_for > 0 then
    redis.call("HSET", queue_key, "aggregated:" .. types[i], "1")
    redis.call("ZADD", aggregators_key, string.format("%d", now + hold_for), member)
  else
    redis.call("ZREM", aggregators_key, member)
  end
end
redis.call("ZREMRANGEBYSCORE", aggregators_key, "-inf", string.format("%d", now))
-- Others may have declared theirs for longer.
if hold_for > 0 and kept_for < hold_for / 1000 then
  redis.call("PEXPIRE", aggregators_key, math.ceil(hold_for / 1000))
end
return { "declared", due }
