#!lua flags=allow-oom
-- Records how far behind the queue is and those of its tenants with most backlog, for whoever looks back. Whoever is
-- told so by its claim calls this, about once every `snapshot`; a second call meanwhile changes nothing.
-- Replies {"recorded", tenants} or {"unregistered"}.
local time = require "time"
local queue = require "queue"
local congestion = require "congestion"
local limits = require "limits"
local backlogs = require "backlogs"
local throttling = require "throttling"
local queue_key = KEYS[1] -- hash: the queue's state
local ready_high_key = KEYS[2] -- zset: tenant → score
local ready_normal_key = KEYS[3] -- zset: tenant → score
local ready_low_key = KEYS[4] -- zset: tenant → score
local parked_key = KEYS[5] -- zset: tenant → instant
local unparking_key = KEYS[6] -- zset: tenants parked under limits that have changed
local paused_key = KEYS[7] -- zset: tenant → paused since
local running_key = KEYS[8] -- hash: tenant → jobs that run
local backlog_key = KEYS[9] -- zset: tenant → binary digits of how many of its jobs wait
local congestion_key = KEYS[10] -- list: what was recorded of the queue, newest first
local limits_key = KEYS[11] -- hash: state of the queue's limits
local group_limits_key = KEYS[12] -- hash: limits shared with other queues
local group_queues_key = KEYS[13] -- zset: queues of the group
local now_given = ARGV[1] -- µs; empty: the server's time
local most = tonumber(ARGV[2]) -- tenants

local prefix = string.sub(queue_key, 1, -6)
local q = queue.open({
  prefix = prefix, queue = queue_key, running = running_key, backlog = backlog_key,
  limits = limits_key, group_limits = group_limits_key, group_queues = group_queues_key, parked = parked_key,
  unparking = unparking_key, ready = { high = ready_high_key, normal = ready_normal_key, low = ready_low_key },
}, time.now(now_given))
if not q or not limits.open(q) then
  return { "unregistered" }
end
local snapshot, keep = congestion.setting(q, "snapshot"), congestion.setting(q, "keep_history")
local newest = redis.call("LINDEX", congestion_key, 0)
local at = math.floor(q.now / 1000)
if newest and math.abs(at - tonumber(string.match(newest, "^%d+"))) < snapshot / 2000 then
  return { "recorded", 0 }
end

local lines = { ready_high_key, ready_normal_key, ready_low_key, parked_key, unparking_key }
local base = congestion.setting(q, "base_backoff")

local function line_of(waiting, speed, backoff, last)
  return string.format("%d %d %.2f %d %d %d", at, waiting, speed, backoff / 1000, base / 1000, last)
end

local speed = congestion.queue_speed(q)
local active = backlogs.active(lines)
local records = { { congestion_key, line_of(q.waiting, speed, congestion.backoff(q, q.waiting, speed), active) } }
for _, row in ipairs(backlogs.largest(q, backlogs.candidates(q, lines, paused_key), most)) do
  local key = prefix .. "congestion:" .. row.name
  redis.call("EXISTS", key)
  records[#records + 1] = { key, line_of(row.waiting, row.speed, row.backoff, (throttling.read(row.tenant))) }
end

local last = math.ceil(keep / snapshot) - 1
for _, record in ipairs(records) do
  redis.call("LPUSH", record[1], record[2])
  redis.call("LTRIM", record[1], 0, last)
  redis.call("PEXPIRE", record[1], math.ceil(keep / 1000))
end
return { "recorded", #records - 1 }
