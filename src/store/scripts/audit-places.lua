#!lua flags=allow-oom
-- Looks at some of the jobs that stand in no lane, or of the leases, a step of a walk over all of them: whether each
-- has its other half. A lease has a claim, a delayed job a record, a record a place, a dead letter both of its parts.
-- Replies {"audited", quiet, differences, cursor}: for how many µs nobody has claimed anything; each difference {kind,
-- subject, expected, found}; the cursor is "0" at the end. Or {"unregistered"}.
local time = require "time"
local queue = require "queue"
local auditing = require "auditing"
local halves = require "halves"
local queue_key = KEYS[1] -- hash: the queue's state
local leases_key = KEYS[2] -- zset: fence:client → when the lease runs out
local delayed_key = KEYS[3] -- zset: job → instant
local aside_key = KEYS[4] -- hash: job → record
local dead_key = KEYS[5] -- zset: job → when it became a dead letter
local dead_jobs_key = KEYS[6] -- hash: job → reason and record
local duties_key = KEYS[7] -- zset: duty → when it may be taken
local events_key = KEYS[8] -- stream: what happened
local now_given = ARGV[1] -- µs; empty: the server's time
local repairs = tonumber(ARGV[2]) -- 1: put right what differs, 0: only look
local what = ARGV[3] -- leases, delayed, aside, dead or letters
local cursor = ARGV[4] -- of the step before, or 0

-- Looked at in one step. Hashes are read with their records, which may be large.
local OF_SETS, OF_HASHES = 200, 50

local q = queue.open({
  prefix = string.sub(queue_key, 1, -6), queue = queue_key, leases = leases_key, delayed = delayed_key,
  aside = aside_key, dead = dead_key, dead_jobs = dead_jobs_key, duties = duties_key, events = events_key,
}, time.now(now_given))
if not q then
  return { "unregistered" }
end
auditing.open(q, repairs == 1)
local walked = {
  leases = { "ZSCAN", leases_key, OF_SETS }, delayed = { "ZSCAN", delayed_key, OF_SETS },
  aside = { "HSCAN", aside_key, OF_HASHES }, dead = { "ZSCAN", dead_key, OF_SETS },
  letters = { "HSCAN", dead_jobs_key, OF_HASHES },
}
local command, key, count = unpack(walked[what])
local found = redis.call(command, key, cursor, "COUNT", count)
local members, is_seen = {}, {}
for i = 1, #found[2], 2 do
  local member = found[2][i]
  -- A walk may meet the same twice.
  if not is_seen[member] then
    is_seen[member], members[#members + 1] = true, member
  end
end
halves[what](q, members)

if auditing.mend(q) then
  queue.save(q)
end
return { "audited", auditing.quiet(q), q.audit.found, found[1] }
