#!lua flags=no-writes
-- A page of the schedules, by when they are due; those that are paused come last, and one whose hash is lost is left
-- out. Replies {"schedules", how many there are, how many are due in time, when the first is due or empty, cursor, its
-- schedule, row, …}: the cursor is where the page ends in the set, empty when no others follow. Or {"unregistered"}.
local time = require "time"
local queue = require "queue"
local ranks = require "ranks"
local schedules = require "schedules"
local queue_key = KEYS[1] -- hash: the queue's state
local schedules_key = KEYS[2] -- zset: schedule → when to look at it
local now_given = ARGV[1] -- µs; empty: the server's time
local within = tonumber(ARGV[2]) -- µs: what is due that soon counts as due in time
local only_in_time = tonumber(ARGV[3]) -- 1: list no others
local after_score = ARGV[4] -- where the page before ended; empty for the first
local after_name = ARGV[5] -- the schedule it ended with
local most = tonumber(ARGV[6]) -- rows
local max_bytes = tonumber(ARGV[7]) -- of definitions in the reply, unless the first is larger

local q = queue.open({ prefix = string.sub(queue_key, 1, -6), queue = queue_key, schedules = schedules_key },
  time.now(now_given))
if not q then
  return { "unregistered" }
end
local count = redis.call("ZCARD", schedules_key)
local in_time = redis.call("ZCOUNT", schedules_key, "-inf", string.format("%d", q.now + within))
local first = schedules.first(q)
local from = after_score ~= "" and ranks.up_to(schedules_key, after_score, after_name) or 0
local to = only_in_time == 1 and in_time or count
local reply = { "schedules", count, in_time, first and string.format("%d", first) or "", "", "" }
if from < to then
  local found = redis.call("ZRANGE", schedules_key, from, math.min(from + most, to) - 1, "WITHSCORES")
  local length, rows = 0, 0
  while rows < #found / 2 and length < max_bytes do
    local schedule = schedules.load(q, found[2 * rows + 1])
    rows = rows + 1
    if schedule then
      length = length + #schedule.definition
      reply[#reply + 1] = schedules.row(schedule)
    end
  end
  if from + rows < to then
    reply[5], reply[6] = found[2 * rows], found[2 * rows - 1]
  end
end
return reply
