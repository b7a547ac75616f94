#!lua flags=allow-oom
-- Looks whether the jobs of some claims are nowhere else, and whether somebody holds each claim: without a lease nobody
-- would ever take its jobs back.
-- Replies {"audited", quiet, differences, looked at, skipped}: for how many µs nobody has claimed anything; each
-- difference {kind, subject, expected, found}; how many claims of the list were enough for one script; what there was
-- too much of to be looked at. Or {"unregistered"}.
local time = require "time"
local queue = require "queue"
local auditing = require "auditing"
local queue_key = KEYS[1] -- hash: the queue's state
local leases_key = KEYS[2] -- zset: fence:client → when the lease runs out
local delayed_key = KEYS[3] -- zset: job → instant
local aside_key = KEYS[4] -- hash: job → record
local events_key = KEYS[5] -- stream: what happened
local now_given = ARGV[1] -- µs; empty: the server's time
local repairs = tonumber(ARGV[2]) -- 1: put right what differs, 0: only look
local fences, fences_from = ARGV, 3 -- list: fences of claims

local ENOUGH_JOBS = 2000 -- looked at in one script, but for the last claim
local MOST_LEASES = 5000 -- looked through for those of the claims: they are not found by their fence

local q = queue.open({
  prefix = string.sub(queue_key, 1, -6), queue = queue_key, events = events_key,
}, time.now(now_given))
if not q then
  return { "unregistered" }
end
auditing.open(q, repairs == 1)
local is_held, skipped
if redis.call("ZCARD", leases_key) <= MOST_LEASES then
  is_held = {}
  for _, member in ipairs(redis.call("ZRANGE", leases_key, 0, -1)) do
    is_held[string.match(member, "^%d+")] = true
  end
else
  skipped = { "leases" }
end

local looked_at, jobs = 0, 0
for i = fences_from, #fences do
  local fence = fences[i]
  local claimed = redis.call("HKEYS", q.keys.prefix .. "claim:" .. fence)
  if is_held and #claimed > 0 and not is_held[fence] then
    auditing.differs(q, "claim.lease", fence, "a lease", "none", function()
      -- It has run out: the next claim takes its jobs back.
      redis.call("ZADD", leases_key, string.format("%d", q.now), fence .. ":audit")
    end)
  end
  for _, job in ipairs(claimed) do
    if redis.call("ZSCORE", delayed_key, job) then
      auditing.differs(q, "delayed.running", job, "one place", "two", function()
        redis.call("ZREM", delayed_key, job)
        redis.call("HDEL", aside_key, job)
      end)
    end
  end
  looked_at, jobs = looked_at + 1, jobs + #claimed
  if jobs >= ENOUGH_JOBS then
    break
  end
end

if auditing.mend(q) then
  queue.save(q)
end
return { "audited", auditing.quiet(q), q.audit.found, looked_at, skipped or {} }
