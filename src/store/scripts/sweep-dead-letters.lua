#!lua flags=allow-oom
-- Retries or discards dead letters that fit a filter, oldest first, a bounded number at once. Those past their time are
-- none, and some of them go on the way.
-- Replies {"swept", looked, taken, from, after, to, left}: where to go on (`from` is "" when all were looked at) and
-- how many letters there are; or {"unregistered"}.
local time = require "time"
local queue = require "queue"
local opening = require "opening"
local tenants = require "tenants"
local actions = require "actions"
local letters = require "letters"
local letter_search = require "letter_search"
local expiring = require "expiring"
local requests = require "requests"
local waking = require "waking"
local queue_key = KEYS[1] -- hash: the queue's state
local ready_high_key = KEYS[2] -- zset: tenant → score
local ready_normal_key = KEYS[3] -- zset: tenant → score
local ready_low_key = KEYS[4] -- zset: tenant → score
local since_high_key = KEYS[5] -- zset: tenant → able to run since
local since_normal_key = KEYS[6] -- zset: tenant → able to run since
local since_low_key = KEYS[7] -- zset: tenant → able to run since
local parked_key = KEYS[8] -- zset: tenant → instant
local unparking_key = KEYS[9] -- zset: tenants parked under limits that have changed
local delayed_key = KEYS[10] -- zset: job → instant
local aside_key = KEYS[11] -- hash: job → record
local dead_key = KEYS[12] -- zset: job → when it became a dead letter
local dead_jobs_key = KEYS[13] -- hash: job → reason and record
local idle_key = KEYS[14] -- zset: client → until when it is known to wait
local client_key = KEYS[15] -- hash: replies to the client's last requests
local running_key = KEYS[16] -- hash: tenant → jobs that run
local canceled_key = KEYS[17] -- zset: job → when the mark may be forgotten
local events_key = KEYS[18] -- stream: what happened
local duties_key = KEYS[19] -- zset: duty → when it may be taken
local duty_tries_key = KEYS[20] -- hash: duty → how often it was tried in vain
local now_given = ARGV[1] -- µs; empty: the server's time
local request = tonumber(ARGV[2]) -- number of the client's request
local retries = tonumber(ARGV[3]) -- 1: run them again, 0: discard them
local from = ARGV[4] -- µs: where to begin, with `after`
local after = ARGV[5] -- the last job looked at, which died then; empty: begin with all of that moment
local to_given = ARGV[6] -- µs: died then or earlier, and now at the latest; empty: now
local looks = tonumber(ARGV[7]) -- letters looked at, at most
local most = tonumber(ARGV[8]) -- letters taken, at most
local tenant_wanted = ARGV[9] -- its token, or empty
local type_wanted = ARGV[10] -- type of job, or empty
local action_wanted = ARGV[11] -- name of an action, or empty
local reason_wanted = ARGV[12] -- why it died, or empty
local error_wanted = ARGV[13] -- text in the error's message, or empty

local TRIMMED_AT_ONCE = 100

local known = requests.recall(client_key, request)
if known then
  return known
end
local q = opening.open(
  time.now(now_given), queue_key, { ready_high_key, ready_normal_key, ready_low_key },
  { since_high_key, since_normal_key, since_low_key }, parked_key, unparking_key,
  { idle = idle_key, running = running_key, events = events_key, duties = duties_key, duty_tries = duty_tries_key,
    delayed = delayed_key, aside = aside_key, canceled = canceled_key, dead = dead_key, dead_jobs = dead_jobs_key }
)
if not q then
  return { "unregistered" }
end

local expired = expiring.find(q, TRIMMED_AT_ONCE)
local wanted = {
  tenant = tenant_wanted, type = type_wanted, action = action_wanted, reason = reason_wanted, error = error_wanted,
}
local looked, taken, next_from, next_after, to = letter_search.each(
  q, wanted, from, after, to_given, looks, most, function(job, text)
    if retries == 1 then
      letters.revive(q, job, text)
    else
      letters.discard(q, job)
    end
  end
)
local sleeper = retries == 1 and taken > 0 and waking.find(q)
if q.actions then
  actions.close(q)
end
local left = letter_search.count(q) - taken

expiring.forget(q, expired)
letters.save(q)
actions.save(q)
tenants.save(q)
queue.save(q)
if sleeper then
  waking.wake(q, sleeper)
end
return requests.remember(client_key, request, { "swept", looked, taken, next_from, next_after, to, left })
