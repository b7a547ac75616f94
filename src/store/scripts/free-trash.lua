#!lua flags=allow-oom
-- Frees records that stand aside for a list that was dropped, a bounded number at once.
-- Replies {"freed", left}.
local queue_key = KEYS[1] -- hash: the queue's state
local aside_key = KEYS[2] -- hash: job → record
local trash = ARGV[1] -- name of the dropped list
local most = tonumber(ARGV[2]) -- records

local key = string.sub(queue_key, 1, -6) .. "trash:" .. trash
local jobs = redis.call("LRANGE", key, 0, most - 1)
redis.call("EXISTS", aside_key)
if #jobs > 0 then
  redis.call("HDEL", aside_key, unpack(jobs))
  redis.call("LTRIM", key, #jobs, -1)
end
return { "freed", redis.call("LLEN", key) }
