#!lua
-- Ticks: makes the jobs of schedules that are due and moves these on to their next tick, in one step. One that was
-- changed, or ticked by somebody else, since its tick was worked out is left alone; so there is one job for each tick,
-- however many processes there are and whatever happens to them.
-- Replies {"ticked", fence, wait, word, …}: under that fence others that are due stay the caller's for another lease,
-- it is empty when none are; `wait` is the time in µs until something is due, -1 for ever. A word for each schedule:
-- "ticked", "changed", or "full" when the queue has no room and the tick waits for it. Or {"unregistered"}.
local time = require "time"
local queue = require "queue"
local tenants = require "tenants"
local lanes = require "lanes"
local submitting = require "submitting"
local schedules = require "schedules"
local events = require "events"
local record = require "record"
local waking = require "waking"
local requests = require "requests"
local queue_key = KEYS[1] -- hash: the queue's state
local ready_high_key = KEYS[2] -- zset: tenant → score
local ready_normal_key = KEYS[3] -- zset: tenant → score
local ready_low_key = KEYS[4] -- zset: tenant → score
local since_high_key = KEYS[5] -- zset: tenant → able to run since
local since_normal_key = KEYS[6] -- zset: tenant → able to run since
local since_low_key = KEYS[7] -- zset: tenant → able to run since
local parked_key = KEYS[8] -- zset: tenant → instant
local unparking_key = KEYS[9] -- zset: tenants parked under limits that have changed
local ids_key = KEYS[10] -- hash: period → ids given in it
local idle_key = KEYS[11] -- zset: client → until when it is known to wait
local alarm_key = KEYS[12] -- string: instant:client
local client_key = KEYS[13] -- hash: replies to the client's last requests
local running_key = KEYS[14] -- hash: tenant → jobs that run
local events_key = KEYS[15] -- stream: what happened
local duties_key = KEYS[16] -- zset: duty → when it may be taken
local schedules_key = KEYS[17] -- zset: schedule → when to look at it
local backlog_key = KEYS[18] -- zset: tenant → binary digits of how many of its jobs wait
local now_given = ARGV[1] -- µs; empty: the server's time
local request = tonumber(ARGV[2]) -- number of the client's request
local lease = tonumber(ARGV[3]) -- µs
local ticks, ticks_from = ARGV, 4 -- list: schedule, revision, due, next due or empty, ticks missed, tenant, level,
-- lane, count, then the ticks to make jobs for, then of each job its digest and record

local FULL_AGAIN = 1000000 -- µs after which room is looked for again

local known = requests.recall(client_key, request)
if known then
  return known
end
local q = queue.open({
  prefix = string.sub(queue_key, 1, -6), queue = queue_key,
  ready = { high = ready_high_key, normal = ready_normal_key, low = ready_low_key },
  since = { high = since_high_key, normal = since_normal_key, low = since_low_key },
  parked = parked_key, unparking = unparking_key, ids = ids_key, idle = idle_key, alarm = alarm_key,
  running = running_key, events = events_key, duties = duties_key, schedules = schedules_key, backlog = backlog_key,
}, time.now(now_given))
if not q then
  return { "unregistered" }
end
local batch = submitting.open(q)
local words, moved, has_costs = {}, {}, false

-- What does not fit waits: the schedule stays due at the first tick that has no job yet.
local function tick(schedule, at)
  local count, tenant_name = tonumber(ticks[at + 8]), ticks[at + 5]
  local dealt_with = 0
  if count > 0 then
    local tenant = tenants.load(q, tenant_name)
    local lane = lanes.open(q, tenant, ticks[at + 6], ticks[at + 7])
    dealt_with = select(2, submitting.line(q, batch, tenant, lane, "named", ticks, at + 9 + count, count))
    -- All jobs of a schedule cost the same.
    has_costs = has_costs or dealt_with > 0 and record.cost(ticks[at + 10 + count]) > 1
  end
  schedule.missed_now = tonumber(ticks[at + 4])
  schedule.due = dealt_with < count and ticks[at + 9 + dealt_with] or ticks[at + 3]
  schedule.made = dealt_with
  schedule.last = dealt_with > 0 and ticks[at + 8 + dealt_with] or nil
  schedule.look_at = dealt_with < count and string.format("%d", q.now + FULL_AGAIN) or schedules.look_at(schedule)
  batch.earliest = math.min(batch.earliest, tonumber(schedule.look_at))
  if schedule.missed_now > 0 then
    local fields = { "schedule", schedule.name, "tenant", tenant_name, "missed", ticks[at + 4] }
    events.add(q, "schedule.missed", fields)
  end
  moved[#moved + 1] = schedule
  return dealt_with < count and "full" or "ticked"
end

local at = ticks_from
while ticks[at] do
  local schedule = schedules.load(q, ticks[at])
  local is_same = schedule and schedule.revision == ticks[at + 1] and schedule.due == ticks[at + 2]
  words[#words + 1] = is_same and tick(schedule, at) or "changed"
  at = at + 9 + 3 * tonumber(ticks[at + 8])
end
local sleeper
if #moved > 0 then
  q.tenants = q.tenants or { list = {}, by_name = {} }
  sleeper = submitting.sleeper(q, batch)
end

for _, schedule in ipairs(moved) do
  redis.call("HSET", schedule.key, "due", schedule.due)
  if schedule.last then
    redis.call("HSET", schedule.key, "last", schedule.last)
    redis.call("HINCRBY", schedule.key, "ticks", schedule.made)
  end
  if schedule.missed_now > 0 then
    redis.call("HINCRBY", schedule.key, "missed", schedule.missed_now)
  end
  redis.call("ZADD", schedules_key, schedule.look_at, schedule.name)
  queue.count(q, "ticks", schedule.made)
  queue.count(q, "ticks_missed", schedule.missed_now)
end
local fence, wait = schedules.set_duty(q, lease)
submitting.save(q, batch)
if has_costs and not q.has_costs then
  redis.call("HSET", queue_key, "costs", "1")
end
if sleeper then
  waking.wake(q, sleeper)
end
return requests.remember(client_key, request, { "ticked", fence or "", wait, unpack(words) })
