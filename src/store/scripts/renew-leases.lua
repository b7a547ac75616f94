#!lua flags=allow-oom
-- Prolongs leases. One that ran out but was not taken back yet is renewed: nobody else has its jobs.
-- Replies {"renewed", lost}: `lost` holds the fences that are no longer the caller's.
local time = require "time"
local leases_key = KEYS[1] -- zset: fence:client → when the lease runs out
local now_given = ARGV[1] -- µs; empty: the server's time
local client = ARGV[2] -- who asks
local lease = tonumber(ARGV[3]) -- µs
local fences, fences_from = ARGV, 4 -- list: fences

local lost, kept = {}, {}
local expires = time.now(now_given) + lease
for i = fences_from, #fences do
  local member = fences[i] .. ":" .. client
  if redis.call("ZSCORE", leases_key, member) then
    kept[#kept + 1] = expires
    kept[#kept + 1] = member
  else
    lost[#lost + 1] = fences[i]
  end
end
if #kept > 0 then
  redis.call("ZADD", leases_key, "XX", unpack(kept))
end
return { "renewed", lost }
