#!lua flags=allow-oom
-- Looks whether everything of some tenants is as it should be: their lanes and their turns, their counts of waiting
-- jobs, and the sets they stand in; each of them at one moment, so that it is exact however busy the queue is.
-- Replies {"audited", quiet, differences, looked at, skipped}: for how many µs nobody has claimed anything; each
-- difference {kind, subject, expected, found}; how many tenants of the list were enough for one script; what there was
-- too much of to be looked at, "tenant:<tenant>" for all that one tenant has. Or {"unregistered"}.
local time = require "time"
local queue = require "queue"
local opening = require "opening"
local tenants = require "tenants"
local actions = require "actions"
local auditing = require "auditing"
local lineup = require "lineup"
local elsewhere = require "elsewhere"
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
local backlog_key = KEYS[17] -- zset: tenant → binary digits of how many of its jobs wait
local events_key = KEYS[18] -- stream: what happened
local now_given = ARGV[1] -- µs; empty: the server's time
local repairs = tonumber(ARGV[2]) -- 1: put right what differs, 0: only look
local met, met_from = ARGV, 3 -- list: of each tenant its name, how many lanes of it were met by their keys, and these:
-- "<level>:<lane>"

-- Lanes looked at in one script, unless a single tenant has more: each takes three to five calls.
local ENOUGH_LANES = 600

local q = opening.open(
  time.now(now_given), queue_key, { ready_high_key, ready_normal_key, ready_low_key },
  { since_high_key, since_normal_key, since_low_key }, parked_key, unparking_key,
  { paused = paused_key, aside = aside_key, running = running_key, canceled = canceled_key, delayed = delayed_key,
    leases = leases_key, dead_jobs = dead_jobs_key, backlog = backlog_key, events = events_key }
)
if not q then
  return { "unregistered" }
end
auditing.open(q, repairs == 1)

local function check_member(name, kind, key, is_expected, score, found, repair)
  if is_expected and not found then
    auditing.differs(q, kind .. ".missing", name, score, "none", repair)
  elseif not is_expected and found then
    auditing.differs(q, kind .. ".extra", name, "none", found, function()
      redis.call("ZREM", key, name)
    end)
  end
end

-- Its place by backlog is right within a factor of two: only whether it has one can be wrong.
local function check_rank(name, waiting)
  local rank = redis.call("ZSCORE", backlog_key, name)
  if waiting == 0 or waiting >= tenants.RANKED_FROM then
    local _, digits = math.frexp(waiting)
    check_member(name, "backlog", backlog_key, waiting > 0, digits, rank, function()
      redis.call("ZADD", backlog_key, digits, name)
    end)
  end
end

-- Where it stands: in line on each level where it has work and is free.
local function check_places(tenant, listed)
  local name = tenant.name
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
    check_member(name, "ready." .. level, ready_key, stands, at.score, score, put_in_line)
    if stands and score and at.score ~= 0 and tonumber(score) ~= at.score then
      auditing.differs(q, "ready." .. level .. ".score", name, at.score, score, put_in_line)
    end
    check_member(name, "since." .. level, since_key, stands, at.since, since, function()
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
    check_member(name, "parked", parked_key, false, 0, parked_at)
    check_member(name, "unparking", unparking_key, false, 0, unparking_at)
  end
  local paused_at = redis.call("ZSCORE", paused_key, name)
  check_member(name, "paused", paused_key, fields.paused ~= nil, fields.paused, paused_at, function()
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
end

-- Answers how many lanes it has looked at.
local function check(name, lanes_from, lanes_to)
  local tenant = tenants.load(q, name)
  local listed, fronts, lanes = lineup.check(q, tenant, met, lanes_from, lanes_to)
  if not listed then
    auditing.skip(q, "tenant:" .. name)
    return 0
  end
  auditing.number(q, "tenant.front", name, tenant, "front", fronts)
  -- Cancelled jobs that still stand in lists are counted only where the sum is wrong: they are looked for one by one.
  local marks = tenant.marks
  if tenant.waiting + marks ~= listed then
    marks = lineup.marks(q, tenant)
  end
  if marks then
    auditing.number(q, "tenant.marks", name, tenant, "marks", marks)
    auditing.number(q, "tenant.waiting", name, tenant, "waiting", listed - marks)
    check_rank(name, listed - marks)
  else
    auditing.skip(q, "tenant:" .. name)
  end
  -- Where jobs of it are delayed, they are counted with all others: who has none is met by nobody there.
  if tenant.delayed ~= 0 and elsewhere.has_none(q, "delayed", name) then
    auditing.number(q, "tenant.delayed", name, tenant, "delayed", 0)
  end
  check_places(tenant, listed)
  return lanes
end

local at, looked_at, lanes, differing = met_from, 0, 0, {}
while at <= #met and lanes < ENOUGH_LANES do
  local name, count, found = met[at], tonumber(met[at + 1]), #q.audit.found
  lanes = lanes + check(name, at + 2, at + 1 + count)
  at, looked_at = at + 2 + count, looked_at + 1
  if #q.audit.found > found then
    differing[#differing + 1] = q.tenants.by_name[name]
  end
end

if auditing.mend(q) then
  -- The others are written by nobody: one of them may be gone by now.
  q.tenants.list = differing
  for _, tenant in ipairs(differing) do
    for _, level in pairs(tenant.at) do
      -- The sets were put right by hand.
      level.was_present = level.present
    end
  end
  tenants.save(q)
  if q.actions then
    actions.save(q)
  end
  queue.save(q)
end
return { "audited", auditing.quiet(q), q.audit.found, looked_at, q.audit.skipped }
