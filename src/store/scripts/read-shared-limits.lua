#!lua flags=no-writes
-- The state of shared limits of a group. Replies {"limits", rows}, rows as those of read-limits, or {"unregistered"}.
local time = require "time"
local alone = require "alone"
local readings = require "readings"
local group_limits_key = KEYS[1] -- hash: limits shared by the queues of the group
local group_queues_key = KEYS[2] -- zset: queues of the group
local now_given = ARGV[1] -- µs; empty: the server's time
local names, names_from = ARGV, 2 -- list: the limits

local now = time.now(now_given)
local q = alone.open(group_limits_key, group_queues_key, names, names_from, #names - names_from + 1, "", now, "")
if not q then
  return { "unregistered" }
end
return { "limits", readings.all(q, nil, 1) }
