#!lua flags=allow-oom
-- Takes the first duty that is due, for as long as a lease. Replies {"taken", duty, fence, tries}, {"none"} or
-- {"unregistered"}.
local time = require "time"
local queue_key = KEYS[1] -- hash: the queue's state
local duties_key = KEYS[2] -- zset: duty → when it may be taken
local duty_tries_key = KEYS[3] -- hash: duty → how often it was tried in vain
local now_given = ARGV[1] -- µs; empty: the server's time
local lease = tonumber(ARGV[2]) -- µs

local now = time.now(now_given)
if redis.call("EXISTS", queue_key) == 0 then
  return { "unregistered" }
end
local duty = redis.call("ZRANGEBYSCORE", duties_key, "-inf", now, "LIMIT", 0, 1)[1]
if not duty then
  return { "none" }
end
local tries = tonumber(redis.call("HGET", duty_tries_key, duty) or 0)
local fence = string.format("%d", now + lease)
redis.call("ZADD", duties_key, fence, duty)
return { "taken", duty, fence, tries }
