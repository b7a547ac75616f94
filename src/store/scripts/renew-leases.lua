#!lua flags=allow-oom
-- Prolongs leases. One that ran out but was not taken back yet is renewed: nobody else has its jobs. What the queue has
-- in flight under shared limits is written anew then: others may have left it out.
-- Replies {"renewed", lost}: `lost` holds the fences that are no longer the caller's.
local time = require "time"
local queue = require "queue"
local in_flight = require "in_flight"
local leases_key = KEYS[1] -- zset: fence:client → when the lease runs out
local queue_key = KEYS[2] -- hash: the queue's state
local group_limits_key = KEYS[3] -- hash: limits shared with other queues
local now_given = ARGV[1] -- µs; empty: the server's time
local client = ARGV[2] -- who asks
local lease = tonumber(ARGV[3]) -- µs
local fences, fences_from = ARGV, 4 -- list: fences

local lost, kept, had_run_out = {}, {}, false
local now = time.now(now_given)
local expires = now + lease
for i = fences_from, #fences do
  local member = fences[i] .. ":" .. client
  local until_us = redis.call("ZSCORE", leases_key, member)
  if until_us then
    had_run_out = had_run_out or tonumber(until_us) <= now
    kept[#kept + 1] = expires
    kept[#kept + 1] = member
  else
    lost[#lost + 1] = fences[i]
  end
end
if #kept > 0 then
  redis.call("ZADD", leases_key, "XX", unpack(kept))
end
local q = had_run_out and queue.open({ queue = queue_key }, now)
for _, shared in ipairs(q and q.settings.shared or {}) do
  local name = string.match(queue_key, "}:(.*):queue$")
  in_flight.set(group_limits_key, shared.limit, name, in_flight.own(q, shared))
end
return { "renewed", lost }
