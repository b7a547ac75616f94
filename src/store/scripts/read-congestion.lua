#!lua flags=no-writes
-- What backlogs mean in time: of one tenant, or of the queue and those of its tenants that are behind most.
-- Replies {"congestion", now, base, queue, tenants}: instants and times in µs as text, `queue` is {waiting, active
-- tenants, speed, backoff, is measured}, `tenants` holds {tenant, waiting, speed, backoff, is measured, throttles, last
-- throttled at, last backoff (ms), finished} of each, longest to wait first; speeds as text, jobs a second. Or
-- {"unregistered"}.
local time = require "time"
local queue = require "queue"
local congestion = require "congestion"
local limits = require "limits"
local backlogs = require "backlogs"
local queue_key = KEYS[1] -- hash: the queue's state
local ready_high_key = KEYS[2] -- zset: tenant → score
local ready_normal_key = KEYS[3] -- zset: tenant → score
local ready_low_key = KEYS[4] -- zset: tenant → score
local parked_key = KEYS[5] -- zset: tenant → instant
local unparking_key = KEYS[6] -- zset: tenants parked under limits that have changed
local paused_key = KEYS[7] -- zset: tenant → paused since
local running_key = KEYS[8] -- hash: tenant → jobs that run
local backlog_key = KEYS[9] -- zset: tenant → binary digits of how many of its jobs wait
local limits_key = KEYS[10] -- hash: state of the queue's limits
local group_limits_key = KEYS[11] -- hash: limits shared with other queues
local group_queues_key = KEYS[12] -- zset: queues of the group
local now_given = ARGV[1] -- µs; empty: the server's time
local name = ARGV[2] -- the tenant, or empty
local most = tonumber(ARGV[3]) -- tenants, where none is named

local q = queue.open({
  prefix = string.sub(queue_key, 1, -6), queue = queue_key, running = running_key, backlog = backlog_key,
  limits = limits_key, group_limits = group_limits_key, group_queues = group_queues_key, parked = parked_key,
  unparking = unparking_key, ready = { high = ready_high_key, normal = ready_normal_key, low = ready_low_key },
}, time.now(now_given))
if not q or not limits.open(q) then
  return { "unregistered" }
end
local lines = { ready_high_key, ready_normal_key, ready_low_key, parked_key, unparking_key }
local found
if name ~= "" then
  found = { backlogs.of(q, name) }
else
  found = backlogs.longest(q, backlogs.candidates(q, lines, paused_key), most)
end
local rows = {}
for i, row in ipairs(found) do
  rows[i] = backlogs.encode(q, row)
end
local speed, is_measured = congestion.queue_speed(q)
return {
  "congestion", string.format("%.0f", q.now), string.format("%.0f", congestion.setting(q, "base_backoff")),
  {
    q.waiting, backlogs.active(lines), string.format("%.2f", speed),
    string.format("%.0f", congestion.backoff(q, q.waiting, speed)), is_measured and 1 or 0,
  },
  rows,
}
