#!lua flags=no-writes
-- A page of the dead letters, newest first, without those past their time. Replies {"letters", total, is_more, rows}:
-- job, when it died (µs), letter, for each; is_more is 1 where others follow. A letter is nil where only its instant is
-- left.
local time = require "time"
local queue = require "queue"
local expiring = require "expiring"
local ranks = require "ranks"
local queue_key = KEYS[1] -- hash: the queue's state
local dead_key = KEYS[2] -- zset: job → when it became a dead letter
local dead_jobs_key = KEYS[3] -- hash: job → reason and record
local now_given = ARGV[1] -- µs; empty: the server's time
local after_died = ARGV[2] -- µs: where the page before ended; empty for the first
local after_job = ARGV[3] -- the job it ended with
local count = tonumber(ARGV[4]) -- rows at most
local max_bytes = tonumber(ARGV[5]) -- of letters in the reply, unless the first is larger

local q = queue.open({ queue = queue_key }, time.now(now_given))
local all = redis.call("ZCARD", dead_key)
local past = q and redis.call("ZCOUNT", dead_key, "-inf", string.format("%d", expiring.instant(q))) or 0
-- What follows stands before that place: the set begins with the oldest.
local left = (after_died ~= "" and ranks.before(dead_key, after_died, after_job) or all) - past
local rows, found = 0, {}
if left > 0 then
  local from = all - past - left
  local page = redis.call("ZRANGE", dead_key, from, from + math.min(count, left) - 1, "REV", "WITHSCORES")
  local bytes = 0
  while 2 * rows < #page and bytes < max_bytes do
    local job, died = page[2 * rows + 1], page[2 * rows + 2]
    local letter = redis.call("HGET", dead_jobs_key, job)
    found[3 * rows + 1], found[3 * rows + 2], found[3 * rows + 3] = job, died, letter
    rows, bytes = rows + 1, bytes + (letter and #letter or 0)
  end
end
return { "letters", all - past, rows < left and 1 or 0, found }
