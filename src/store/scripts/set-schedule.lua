#!lua
-- Makes a schedule, or gives one another definition; what it has counted and whether it is paused stay. The same
-- definition again changes nothing, so that every process can say at its start what it wants. Its next tick and what is
-- missed were worked out from how it stood: if it stands otherwise by now, or has ticked, nothing happens.
-- Replies {"created", since}, {"changed", since} or {"unchanged", since}: `since` is when the queue got its first, and
-- another once the store was emptied. Or {"stale"}, or {"unregistered"}.
local time = require "time"
local queue = require "queue"
local schedules = require "schedules"
local events = require "events"
local waking = require "waking"
local requests = require "requests"
local queue_key = KEYS[1] -- hash: the queue's state
local schedules_key = KEYS[2] -- zset: schedule → when to look at it
local duties_key = KEYS[3] -- zset: duty → when it may be taken
local idle_key = KEYS[4] -- zset: client → until when it is known to wait
local alarm_key = KEYS[5] -- string: instant:client
local events_key = KEYS[6] -- stream: what happened
local client_key = KEYS[7] -- hash: replies to the client's last requests
local now_given = ARGV[1] -- µs; empty: the server's time
local request = tonumber(ARGV[2]) -- number of the client's request
local name = ARGV[3] -- of the schedule
local definition = ARGV[4] -- JSON: when, which job, what to do about missed ticks
local due = ARGV[5] -- µs: its next tick; empty: none
local only_if_absent = tonumber(ARGV[6]) -- 1: one that is there stays as it is
local was_revision = ARGV[7] -- of the one that the caller found; empty: it found none
local was_due = ARGV[8] -- µs: of that one
local missed = tonumber(ARGV[9]) -- ticks of that one that were due and get no job
local missed_by = ARGV[10] -- the tenant they were for

local known = requests.recall(client_key, request)
if known then
  return known
end
local q = queue.open({
  prefix = string.sub(queue_key, 1, -6), queue = queue_key, schedules = schedules_key, duties = duties_key,
  idle = idle_key, alarm = alarm_key, events = events_key,
}, time.now(now_given))
if not q then
  return { "unregistered" }
end
local schedule = schedules.load(q, name)
local since = redis.call("HGET", queue_key, "schedules_since")
if schedule and (only_if_absent == 1 or schedule.definition == definition) then
  return { "unchanged", since }
end
local found = schedule or { revision = "", due = "", paused = "" }
if found.revision ~= was_revision or found.due ~= was_due then
  return { "stale" }
end
local word = schedule and "changed" or "created"
local key = q.keys.prefix .. "schedule:" .. name
local look_at = schedules.look_at({ paused = found.paused, due = due })
-- Whoever sleeps until the next known instant must hear of an earlier one.
local sleeper = waking.find_for(q, tonumber(look_at))

if not since then
  since = string.format("%d", q.now)
  redis.call("HSET", queue_key, "schedules_since", since)
end
redis.call("HSET", key, "definition", definition, "due", due, "revision", schedules.new_revision(q))
if missed > 0 then
  redis.call("HINCRBY", key, "missed", missed)
  queue.count(q, "ticks_missed", missed)
  events.add(q, "schedule.missed", { "schedule", name, "tenant", missed_by, "missed", string.format("%d", missed) })
end
redis.call("ZADD", schedules_key, look_at, name)
schedules.set_duty(q, 0)
queue.save(q)
if sleeper then
  waking.wake(q, sleeper)
end
return requests.remember(client_key, request, { word, since })
