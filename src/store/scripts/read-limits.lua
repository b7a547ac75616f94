#!lua flags=no-writes
-- The state of every limit a tenant stands under, or of the queue's and levels' own without one.
-- Replies {"limits", active tenants, rows}; a row is {scope, name, kind, limit, window µs, burst, jitter µs, available,
-- used, next grant in µs, full again in µs}. Or {"unregistered"}.
local time = require "time"
local queue = require "queue"
local limits = require "limits"
local limited = require "limited"
local readings = require "readings"
local queue_key = KEYS[1] -- hash: the queue's state
local ready_high_key = KEYS[2] -- zset: tenant → score
local ready_normal_key = KEYS[3] -- zset: tenant → score
local ready_low_key = KEYS[4] -- zset: tenant → score
local parked_key = KEYS[5] -- zset: tenant → instant
local unparking_key = KEYS[6] -- zset: tenants parked under limits that have changed
local limits_key = KEYS[7] -- hash: state of the queue's limits
local running_key = KEYS[8] -- hash: tenant → jobs that run
local group_limits_key = KEYS[9] -- hash: limits shared with other queues
local group_queues_key = KEYS[10] -- zset: queues of the group
local now_given = ARGV[1] -- µs; empty: the server's time
local name = ARGV[2] -- the tenant, or empty

local now = time.now(now_given)
local q = queue.open({
  prefix = string.sub(queue_key, 1, -6), queue = queue_key, limits = limits_key, running = running_key,
  group_limits = group_limits_key, group_queues = group_queues_key,
  ready = { high = ready_high_key, normal = ready_normal_key, low = ready_low_key },
  parked = parked_key, unparking = unparking_key,
}, now)
if not q then
  return { "unregistered" }
end
if not limits.open(q) then
  return { "unregistered" }
end
local rows = readings.all(q, name ~= "" and limited.load(q, name) or nil, 1)
local active = 0
for _, key in ipairs({ ready_high_key, ready_normal_key, ready_low_key, parked_key, unparking_key }) do
  active = active + redis.call("ZCARD", key)
end
return { "limits", active, rows }
