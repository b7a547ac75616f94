#!lua flags=allow-oom
-- Looks whether everything of one tenant is as it should be: its lanes and their turns, its counts of waiting jobs, and
-- the sets it stands in. Replies {"audited", differences}, each {kind, subject, expected, found}; {"skipped"} when it
-- has too many lanes for one script, or {"unregistered"}.
local time = require "time"
local queue = require "queue"
local opening = require "opening"
local tenants = require "tenants"
local auditing = require "auditing"
local lineup = require "lineup"
local queue_key = KEYS[1] -- hash: the queue's state
local ready_high_key = KEYS[2] -- zset: tenant → score
local ready_normal_key = KEYS[3] -- zset: tenant → score
local ready_low_key = KEYS[4] -- zset: tenant → score
local since_high_key = KEYS[5] -- zset: tenant → able to run since
local since_normal_key = KEYS[6] -- zset: tenant → able to run since
local since_low_key = KEYS[7] -- zset: tenant → able to run since
local parked_key = KEYS[8] -- zset: tenant → instant
local unparking_key = KEYS[9] -- zset: tenants parked under limits that have changed
local paused_key = KEYS[10] -- zset: tenant → paused since
local aside_key = KEYS[11] -- hash: job → record
local running_key = KEYS[12] -- hash: tenant → jobs that run
local canceled_key = KEYS[13] -- zset: job → when the mark may be forgotten
local delayed_key = KEYS[14] -- zset: job → instant
local leases_key = KEYS[15] -- zset: fence:client → when the lease runs out
local dead_jobs_key = KEYS[16] -- hash: job → reason and record
local now_given = ARGV[1] -- µs; empty: the server's time
local name = ARGV[2] -- the tenant
local repairs = tonumber(ARGV[3]) -- 1: put right what differs, 0: only look
local met, met_from = ARGV, 4 -- list: lanes of it whose keys were met, "<level>:<lane>"

local q = opening.open(
  time.now(now_given), queue_key, { ready_high_key, ready_normal_key, ready_low_key },
  { since_high_key, since_normal_key, since_low_key }, parked_key, unparking_key,
  { paused = paused_key, aside = aside_key, running = running_key, canceled = canceled_key, delayed = delayed_key,
    leases = leases_key, dead_jobs = dead_jobs_key }
)
if not q then
  return { "unregistered" }
end
auditing.open(q, repairs == 1)
local tenant = tenants.load(q, name)
local listed, fronts = lineup.check(q, tenant, met, met_from)
if not listed then
  return { "skipped" }
end
auditing.number(q, "tenant.front", name, tenant, "front", fronts)
-- Cancelled jobs that still stand in lists are counted only where the sum is wrong: they are looked for one by one.
local marks = tenant.marks
if tenant.waiting + marks ~= listed then
  marks = lineup.marks(q, tenant)
  if not marks then
    return { "skipped" }
  end
end
auditing.number(q, "tenant.marks", name, tenant, "marks", marks)
auditing.number(q, "tenant.waiting", name, tenant, "waiting", listed - marks)

local function check_member(kind, key, is_expected, score, found, repair)
  if is_expected and not found then
    auditing.differs(q, kind .. ".missing", name, score, "none", repair)
  elseif not is_expected and found then
    auditing.differs(q, kind .. ".extra", name, "none", found, function()
      redis.call("ZREM", key, name)
    end)
  end
end

-- Where it stands: in line on each level where it has work and is free.
local fields = tenant.fields
local parked_at, unparking_at = redis.call("ZSCORE", parked_key, name), redis.call("ZSCORE", unparking_key, name)
local is_free = tenants.is_free(tenant)
local lanes_of = {}
for _, level in ipairs(queue.LEVELS) do
  lanes_of[level] = tenant.at[level].expected_lanes or tenant.at[level].lanes
end
for _, level in ipairs(queue.LEVELS) do
  local at, ready_key, since_key = tenant.at[level], q.keys.ready[level], q.keys.since[level]
  local lanes = lanes_of[level]
  if fields.override then
    lanes = fields.override == level and lanes_of.high + lanes_of.normal + lanes_of.low or 0
  end
  local stands = is_free and lanes > 0
  local score, since = redis.call("ZSCORE", ready_key, name), redis.call("ZSCORE", since_key, name)
  local function put_in_line()
    if at.score == 0 then
      at.score, at.changed = queue.tick(q) + (tenant.base or 0) * 1000, true
    end
    redis.call("ZADD", ready_key, string.format("%d", at.score), name)
  end
  check_member("ready." .. level, ready_key, stands, at.score, score, put_in_line)
  if stands and score and at.score ~= 0 and tonumber(score) ~= at.score then
    auditing.differs(q, "ready." .. level .. ".score", name, at.score, score, put_in_line)
  end
  check_member("since." .. level, since_key, stands, at.since, since, function()
    redis.call("ZADD", since_key, string.format("%d", at.since > 0 and at.since or q.now), name)
  end)
end
if fields.parked and not parked_at and not unparking_at then
  auditing.differs(q, "parked.missing", name, fields.parked, "none", function()
    -- When it was due is lost: the next claims ask its limits again.
    redis.call("ZADD", unparking_key, string.format("%d", q.now), name)
  end)
end
if not fields.parked then
  check_member("parked", parked_key, false, 0, parked_at)
  check_member("unparking", unparking_key, false, 0, unparking_at)
end
local paused_at = redis.call("ZSCORE", paused_key, name)
check_member("paused", paused_key, fields.paused ~= nil, fields.paused, paused_at, function()
  redis.call("ZADD", paused_key, fields.paused, name)
end)

-- A tenant with work must not expire.
local has_work = listed + tenant.delayed > 0
if has_work and redis.call("PTTL", tenant.key) >= 0 then
  auditing.differs(q, "tenant.expiry", name, "none", "expires", function()
    redis.call("PERSIST", tenant.key)
    redis.call("HDEL", tenant.key, "idle")
    fields.idle = nil
  end)
end

if auditing.mend(q) then
  for _, at in pairs(tenant.at) do
    -- The sets were put right by hand.
    at.was_present = at.present
  end
  tenants.save(q)
  queue.save(q)
end
return { "audited", q.audit.found }
