#!lua flags=no-writes
-- Counts dead letters that fit a filter, oldest first, a bounded number at once.
-- Replies {"counted", looked, fitting, from, after, to, left}: where to go on (`from` is "" when all were looked at)
-- and how many letters there are; or {"unregistered"}.
local time = require "time"
local queue = require "queue"
local letter_search = require "letter_search"
local queue_key = KEYS[1] -- hash: the queue's state
local dead_key = KEYS[2] -- zset: job → when it became a dead letter
local dead_jobs_key = KEYS[3] -- hash: job → reason and record
local now_given = ARGV[1] -- µs; empty: the server's time
local from = ARGV[2] -- µs: where to begin, with `after`
local after = ARGV[3] -- the last job looked at, which died then; empty: begin with all of that moment
local to_given = ARGV[4] -- µs: died then or earlier, and now at the latest; empty: now
local looks = tonumber(ARGV[5]) -- letters looked at, at most
local most = tonumber(ARGV[6]) -- letters counted, at most
local tenant_wanted = ARGV[7] -- its token, or empty
local type_wanted = ARGV[8] -- type of job, or empty
local action_wanted = ARGV[9] -- name of an action, or empty
local reason_wanted = ARGV[10] -- why it died, or empty
local error_wanted = ARGV[11] -- text in the error's message, or empty

local q = queue.open({
  prefix = string.sub(queue_key, 1, -6), queue = queue_key, dead = dead_key, dead_jobs = dead_jobs_key,
}, time.now(now_given))
if not q then
  return { "unregistered" }
end
local wanted = {
  tenant = tenant_wanted, type = type_wanted, action = action_wanted, reason = reason_wanted, error = error_wanted,
}
local looked, fitting, next_from, next_after, to = letter_search.each(
  q, wanted, from, after, to_given, looks, most, function() end
)
return { "counted", looked, fitting, next_from, next_after, to, letter_search.count(q) }
