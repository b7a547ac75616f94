#!lua flags=allow-oom
-- Takes one letter out of the dead letters: its job runs again as if fresh, or is discarded for good
-- (and is known as canceled as long as its id is).
-- Replies {"retried"}, {"discarded"} or {"unknown"}.
local time = require "time"
local queue = require "queue"
local opening = require "opening"
local tenants = require "tenants"
local actions = require "actions"
local letters = require "letters"
local letter_text = require "letter_text"
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
local job = ARGV[3] -- its key
local retries = tonumber(ARGV[4]) -- 1: run it again, 0: discard it
local payload = ARGV[5] -- JSON to run it with instead of its own; empty: its own

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
local letter = q and redis.call("HGET", dead_jobs_key, job)
if not letter or tonumber(redis.call("ZSCORE", dead_key, job) or q.now) <= expiring.instant(q) then
  return { "unknown" }
end
local sleeper
if retries == 1 then
  local _, _, text = letter_text.parse(letter)
  letters.revive(q, job, text, payload ~= "" and payload or nil)
  actions.close(q)
  sleeper = waking.find(q)
else
  letters.discard(q, job)
end

letters.save(q)
actions.save(q)
tenants.save(q)
queue.save(q)
if sleeper then
  waking.wake(q, sleeper)
end
return requests.remember(client_key, request, { retries == 1 and "retried" or "discarded" })
