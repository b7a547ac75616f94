#!lua flags=allow-oom
-- Takes the schedules that are due, the first of them first, for as long as a lease: nobody else looks after them
-- meanwhile. That only saves work; what makes a tick happen once is tick-schedules. One whose hash is lost is taken out
-- of the set: it would stay the first for ever, and keep the others from ticking.
-- Replies {"taken", now, row, …}, a row of the name alone for one that is lost; {"none"} when nothing is due or another
-- has it; or {"unregistered"}.
local time = require "time"
local queue = require "queue"
local schedules = require "schedules"
local queue_key = KEYS[1] -- hash: the queue's state
local schedules_key = KEYS[2] -- zset: schedule → when to look at it
local duties_key = KEYS[3] -- zset: duty → when it may be taken
local now_given = ARGV[1] -- µs; empty: the server's time
local lease = tonumber(ARGV[2]) -- µs
local most = tonumber(ARGV[3]) -- schedules
local fence = ARGV[4] -- under which the caller has them already; empty: it has not
local max_bytes = tonumber(ARGV[5]) -- of definitions in the reply, unless the first is larger

local q = queue.open({
  prefix = string.sub(queue_key, 1, -6), queue = queue_key, schedules = schedules_key, duties = duties_key,
}, time.now(now_given))
if not q then
  return { "unregistered" }
end
if not schedules.is_duty_due(q, fence) then
  return { "none" }
end
local now_text = string.format("%d", q.now)
local names = redis.call("ZRANGEBYSCORE", schedules_key, "-inf", now_text, "LIMIT", 0, most)
local reply, bytes, lost = { "taken", now_text }, 0, {}
for _, name in ipairs(names) do
  local schedule = schedules.load(q, name)
  if not schedule then
    lost[#lost + 1] = name
  end
  reply[#reply + 1] = schedule and schedules.row(schedule) or { name }
  bytes = bytes + (schedule and #schedule.definition or 0)
  if bytes >= max_bytes then
    break
  end
end
if #lost > 0 then
  redis.call("ZREM", schedules_key, unpack(lost))
end
schedules.set_duty(q, lease)
return reply
