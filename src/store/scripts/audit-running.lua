#!lua flags=allow-oom
-- Looks whether the counts of running jobs are what they count: of each tenant, of each action that has any, of the
-- queue and its levels; an action that has none is looked at in audit-tenants. All at one moment, so that it is exact
-- however busy the queue is; where more runs than can be looked at in a few milliseconds, it is not looked at.
-- Replies {"audited", quiet, differences}: for how many µs nobody has claimed anything; each difference {kind, subject,
-- expected, found}. {"skipped", quiet, what there is too much of}, or {"unregistered"}.
local time = require "time"
local queue = require "queue"
local places = require "places"
local record = require "record"
local auditing = require "auditing"
local census = require "census"
local queue_key = KEYS[1] -- hash: the queue's state
local leases_key = KEYS[2] -- zset: fence:client → when the lease runs out
local running_key = KEYS[3] -- hash: tenant → jobs that run
local canceled_key = KEYS[4] -- zset: job → when the mark may be forgotten
local events_key = KEYS[5] -- stream: what happened
local now_given = ARGV[1] -- µs; empty: the server's time
local repairs = tonumber(ARGV[2]) -- 1: put right what differs, 0: only look

-- So many of each can be looked at within a few milliseconds.
local MOST = { claims = 500, running = 1500, bytes = 4000000 }

local q = queue.open({
  prefix = string.sub(queue_key, 1, -6), queue = queue_key, running = running_key, events = events_key,
}, time.now(now_given))
if not q then
  return { "unregistered" }
end
local function skip(what)
  return { "skipped", auditing.quiet(q), what }
end
if redis.call("ZCARD", leases_key) > MOST.claims then
  return skip("claims")
elseif math.max(q.running, redis.call("HLEN", running_key)) > MOST.running then
  return skip("running")
end
auditing.open(q, repairs == 1)
census.open(q, "running")
local levels, canceling, claim_of, bytes = { high = 0, normal = 0, low = 0 }, 0, {}, 0
-- A mark of a job that runs is kept until its worker has met it. Mostly there is none at all.
local never = string.format("%d", time.NEVER)
local has_marks = redis.call("ZCOUNT", canceled_key, never, never) > 0

local function claimed(fence, key, job, text)
  if claim_of[job] then
    auditing.differs(q, "claim.twice", job, claim_of[job], fence, function()
      redis.call("HDEL", key, job)
    end)
    return
  end
  claim_of[job] = fence
  local level, lane, sequence, name = places.parse(job)
  local _, stood_on = record.of_claimed(text)
  levels[stood_on or level] = levels[stood_on or level] + 1
  census.count(q, name)
  local counts = census.of_action(q, name, lane, sequence)
  if counts then
    counts.jobs = counts.jobs + 1
  end
  if has_marks and tonumber(redis.call("ZSCORE", canceled_key, job) or 0) == time.NEVER then
    canceling = canceling + 1
  end
end

local is_seen = {}
for _, member in ipairs(redis.call("ZRANGE", leases_key, 0, -1)) do
  local fence = string.match(member, "^%d+")
  local key = q.keys.prefix .. "claim:" .. fence
  local flat = is_seen[fence] and {} or redis.call("HGETALL", key)
  is_seen[fence] = true
  for i = 1, #flat, 2 do
    bytes = bytes + #flat[i + 1]
    claimed(fence, key, flat[i], flat[i + 1])
  end
  if bytes > MOST.bytes or q.census.all > MOST.running then
    return skip("running")
  end
end
if census.is_too_much(q) then
  return skip("actions")
end

local flat, stored = redis.call("HGETALL", running_key), {}
for i = 1, #flat, 2 do
  stored[flat[i]] = tonumber(flat[i + 1])
  census.know(q, flat[i])
end
for _, name in ipairs(q.census.names) do
  local runs, found = q.census.tenants[name], stored[name] or 0
  if runs ~= found then
    auditing.differs(q, "tenant.running", name, runs, found, function()
      if runs > 0 then
        redis.call("HSET", running_key, name, runs)
      else
        redis.call("HDEL", running_key, name)
      end
    end)
  end
end
census.compare_actions(q)
auditing.number(q, "queue.running", "", q, "running", q.census.all)
auditing.number(q, "queue.canceling", "", q, "canceling", canceling)
for _, level in ipairs(queue.LEVELS) do
  auditing.number(q, "queue.running." .. level, "", q.at[level], "running", levels[level])
end

if auditing.mend(q) then
  census.save(q)
  queue.save(q)
end
return { "audited", auditing.quiet(q), q.audit.found }
