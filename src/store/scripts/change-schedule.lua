#!lua flags=allow-oom
-- Removes, pauses or resumes a schedule. Ticks that pass while it is paused are not missed: it goes on with the next.
-- Replies {"changed"}, {"unchanged"} if it stood so, {"unknown"}, or {"unregistered"}.
local time = require "time"
local queue = require "queue"
local schedules = require "schedules"
local waking = require "waking"
local requests = require "requests"
local queue_key = KEYS[1] -- hash: the queue's state
local schedules_key = KEYS[2] -- zset: schedule → when to look at it
local duties_key = KEYS[3] -- zset: duty → when it may be taken
local idle_key = KEYS[4] -- zset: client → until when it is known to wait
local alarm_key = KEYS[5] -- string: instant:client
local client_key = KEYS[6] -- hash: replies to the client's last requests
local now_given = ARGV[1] -- µs; empty: the server's time
local request = tonumber(ARGV[2]) -- number of the client's request
local name = ARGV[3] -- of the schedule
local verb = ARGV[4] -- remove, pause or resume
local due = ARGV[5] -- µs: of one that is resumed, its next tick; empty: none

local known = requests.recall(client_key, request)
if known then
  return known
end
local q = queue.open({
  prefix = string.sub(queue_key, 1, -6), queue = queue_key, schedules = schedules_key, duties = duties_key,
  idle = idle_key, alarm = alarm_key,
}, time.now(now_given))
if not q then
  return { "unregistered" }
end
local schedule = schedules.load(q, name)
if not schedule then
  return { "unknown" }
end
local is_paused = schedule.paused ~= ""
if verb ~= "remove" and is_paused == (verb == "pause") then
  return { "unchanged" }
end
local sleeper

if verb == "remove" then
  redis.call("DEL", schedule.key)
  redis.call("ZREM", schedules_key, name)
else
  if verb == "pause" then
    schedule.paused = string.format("%d", q.now)
    redis.call("HSET", schedule.key, "paused", schedule.paused, "revision", schedules.new_revision(q))
  else
    sleeper = tonumber(due) and waking.find_for(q, tonumber(due))
    schedule.paused, schedule.due = "", due
    redis.call("HSET", schedule.key, "due", due, "revision", schedules.new_revision(q))
    redis.call("HDEL", schedule.key, "paused")
  end
  redis.call("ZADD", schedules_key, schedules.look_at(schedule), name)
end
schedules.set_duty(q, 0)
queue.save(q)
if sleeper then
  waking.wake(q, sleeper)
end
return requests.remember(client_key, request, { "changed" })
