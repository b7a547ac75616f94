#!lua flags=allow-oom
-- Takes back what a worker has finished and leases it the next jobs of the fairest tenants, as many as their limits
-- allow: the one round trip of a busy worker. Brings back what is due on the way, a bounded number at once.
-- Replies {word, stale, wait, alarm, fence, fresh, jobs}: word is "claimed", "idle" or "again" (more may be claimable
-- at once), or {"unregistered"} alone. `stale` holds the positions of finished jobs that are no longer the caller's,
-- `wait` is the time in µs until the next claim can bring anything (-1: unknown), `alarm` 1 if the caller is to claim
-- then, `fresh` how long the grants keep in µs (0: for ever), `jobs` is job, record, for each; a job that stood on
-- another level than its own has "^<level>" and a line break before its record.
local time = require "time"
local queue = require "queue"
local limits = require "limits"
local tenants = require "tenants"
local lanes = require "lanes"
local places = require "places"
local record = require "record"
local moves = require "moves"
local turns = require "turns"
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
local aside_key = KEYS[11] -- hash: job → record, of delayed jobs and of those that came back
local leases_key = KEYS[12] -- zset: fence:client → when the lease runs out
local limits_key = KEYS[13] -- hash: state of the queue's limits
local dead_key = KEYS[14] -- zset: job → when it became a dead letter
local dead_jobs_key = KEYS[15] -- hash: job → reason and record
local canceled_key = KEYS[16] -- zset: job → when the mark may be forgotten
local idle_key = KEYS[17] -- zset: client → until when it is known to wait
local alarm_key = KEYS[18] -- string: instant:client
local running_key = KEYS[19] -- hash: tenant → jobs that run
local client_key = KEYS[20] -- hash: replies to the client's last requests
local now_given = ARGV[1] -- µs; empty: the server's time
local client = ARGV[2] -- who asks
local request = tonumber(ARGV[3]) -- number of the client's request
local server = ARGV[4] -- id of the server the client is connected to
local wanted = tonumber(ARGV[5]) -- jobs
local levels_served = ARGV[6] -- levels, separated by spaces
local lease = tonumber(ARGV[7]) -- µs
local idle_for = tonumber(ARGV[8]) -- µs for which the client waits to be woken if it gets too few; 0: not
local has_suspect = tonumber(ARGV[9]) -- 1: the client runs a job that has outlived a lease before
local max_bytes = tonumber(ARGV[10]) -- of records in the reply, unless the first is larger
local finished, finished_from = ARGV, 11 -- list: how many claims had successes; of each its fence, jobs not told of
-- before, how many succeeded, these, and how many tenants they are of; of each tenant its name, the level it stood on
-- and how many. Then for every other job: fence, job, level it stood on, outcome, µs, text.

local LOOKS = 64 -- tenants looked at in one claim
local DUE_AT_ONCE = 64 -- parked tenants and delayed jobs brought back in one claim
local STALLED_AT_ONCE = 256 -- jobs of expired leases brought back in one claim
local GUARD_EVERY = 10 -- turns, of which one may go to an overdue tenant
local COUNTED_AS = {
  retry = "retried", throttled = "throttled", returned = "returned", released = "released", unknown = "unknown_type",
}
local FRESH_SHARE = 0.6 -- of the jitter: the age at which a grant is stale

local now = time.now(now_given)
local prefix = string.sub(queue_key, 1, -6)

local known = requests.recall(client_key, request)
if known then
  known[7] = known[5] ~= "0" and redis.call("HGETALL", prefix .. "claim:" .. known[5]) or {}
  return known
end

local q = queue.open({
  prefix = prefix, queue = queue_key,
  ready = { high = ready_high_key, normal = ready_normal_key, low = ready_low_key },
  since = { high = since_high_key, normal = since_normal_key, low = since_low_key },
  parked = parked_key, unparking = unparking_key, delayed = delayed_key, aside = aside_key, limits = limits_key,
  dead = dead_key, dead_jobs = dead_jobs_key, canceled = canceled_key, idle = idle_key, alarm = alarm_key,
  running = running_key,
}, now)
if not q then
  return { "unregistered" }
end
queue.notice_server(q, server)
limits.open(q)
moves.open(q)
turns.open(q)
q.bytes_left, q.runs = max_bytes, {}
q.suspect_taken = has_suspect == 1

-- 1. What the worker has finished.

-- Positions are counted over the jobs as they stand in the list, from 0.
local stale, ended_in, position = {}, {}, 0

local function ended_of(fence)
  local ended = ended_in[fence]
  if not ended then
    ended = { claim_key = prefix .. "claim:" .. fence, jobs = {} }
    ended_in[fence] = ended
  end
  return ended
end

-- Jobs no longer run: a slot of a concurrency limit is free, and a tenant that waited for one, not for an instant, is
-- back in line. Without limits of tenants nobody waits so, and the tenant need not be read.
local function no_longer_runs(name, standing, count)
  tenants.runs(q, name, standing, -count)
  if q.limits.may_hold and tonumber(redis.call("ZSCORE", parked_key, name) or 0) == time.NEVER then
    tenants.unpark(q, tenants.load(q, name))
  end
end

local function succeed(name, standing, count)
  no_longer_runs(name, standing, count)
  queue.count(q, "succeeded", count)
end

-- The jobs of one claim that succeeded, tenant by tenant. When the claim still holds as many jobs as its worker has not
-- told of before, they are all the worker's; else each is looked for. Answers where the next claim starts.
local function succeed_claim(at)
  local fence, untold, count = finished[at], tonumber(finished[at + 1]), tonumber(finished[at + 2])
  local ended = ended_of(fence)
  local is_whole = redis.call("HLEN", ended.claim_key) == untold
  local first = at + 3
  at = first + count
  local jobs = ended.jobs
  if is_whole then
    for i = first, first + count - 1 do
      jobs[#jobs + 1] = finished[i]
    end
  end
  for _ = 1, tonumber(finished[at]) do
    local name, standing, of_group = finished[at + 1], finished[at + 2], tonumber(finished[at + 3])
    at = at + 3
    local ours = of_group
    if not is_whole then
      ours = 0
      for i = first, first + of_group - 1 do
        if redis.call("HEXISTS", ended.claim_key, finished[i]) == 1 then
          jobs[#jobs + 1] = finished[i]
          ours = ours + 1
        else
          stale[#stale + 1] = position + i - first
        end
      end
    end
    first = first + of_group
    position = position + of_group
    if ours > 0 then
      succeed(name, standing, ours)
    end
  end
  if q.canceling > 0 then
    for _, job in ipairs(jobs) do
      moves.unmark(q, job)
    end
  end
  return at + 1
end

local function finish(fence, job, standing, outcome, delay, detail, text)
  local level, lane, sequence, name = places.parse(job)
  local tenant = tenants.load(q, name)
  no_longer_runs(name, standing, 1)
  if outcome == "succeeded" then
    queue.count(q, "succeeded", 1)
    moves.unmark(q, job)
    moves.ended(q, tenant, level, lane, job)
    return
  end
  local attempts, stalls, throttles, unknown_since, _, error = record.history(text)
  if outcome == "dead" and not moves.is_canceled(q, job) then
    local why, message = string.match(detail, "^([^,]*),(.*)$")
    if moves.is_canceled(q, job) then
      moves.end_canceled(q, tenant, level, lane, job)
    else
      text = record.with_history(text, attempts + 1, stalls, throttles, unknown_since, why, message)
      moves.bury(q, job, text, why)
      moves.ended(q, tenant, level, lane, job)
    end
    return
  end
  if outcome == "returned" or outcome == "unknown" then
    -- Neither was started. A released one was: its call may have been made, so its permits are spent.
    limits.refund(q, tenant, standing, tonumber(fence), outcome == "returned")
  end
  if outcome ~= "dead" then
    queue.count(q, COUNTED_AS[outcome], 1)
  end
  if moves.is_canceled(q, job) then
    moves.end_canceled(q, tenant, level, lane, job)
  elseif outcome == "returned" or outcome == "released" then
    moves.give_back(q, tenant, level, lane, sequence, job, text)
  else
    local reason
    if outcome == "retry" then
      attempts, reason, error = attempts + 1, "retry", detail
    elseif outcome == "throttled" then
      throttles, reason = throttles + 1, "upstream"
    else
      unknown_since = unknown_since > 0 and unknown_since or math.floor(now / 1000)
      reason = "unknown-type"
    end
    text = record.with_history(text, attempts, stalls, throttles, unknown_since, reason, error)
    moves.postpone(q, tenant, job, text, now + delay)
  end
end

local function finish_all()
  local at = finished_from + 1
  for _ = 1, tonumber(finished[finished_from]) do
    at = succeed_claim(at)
  end
  local seen = {}
  for i = at, #finished, 6 do
    local fence, job, standing, outcome = finished[i], finished[i + 1], finished[i + 2], finished[i + 3]
    local ended = ended_of(fence)
    local text = redis.call("HGET", ended.claim_key, job)
    if not text or seen[fence .. job] then
      stale[#stale + 1] = position
    else
      seen[fence .. job] = true
      ended.jobs[#ended.jobs + 1] = job
      text = string.gsub(text, "^%^%l+\n", "")
      finish(fence, job, standing, outcome, tonumber(finished[i + 4]), finished[i + 5], text)
    end
    position = position + 1
  end
end

-- 2. What is due: leases that ran out, delayed jobs, parked tenants.

local expired_leases, brought_back = {}, 0

local function reap()
  local members = redis.call("ZRANGEBYSCORE", leases_key, "-inf", now, "LIMIT", 0, DUE_AT_ONCE)
  for _, member in ipairs(members) do
    if brought_back >= STALLED_AT_ONCE then
      break
    end
    local fence = string.match(member, "^%d+")
    -- One that its own worker is just telling of is left to the next call.
    if not ended_in[fence] then
      local claim_key = prefix .. "claim:" .. fence
      local flat = redis.call("HGETALL", claim_key)
      for i = 1, #flat, 2 do
        local job = flat[i]
        local level, lane, sequence, name = places.parse(job)
        local standing, text = string.match(flat[i + 1], "^%^(%l+)\n(.*)$")
        local tenant = tenants.load(q, name)
        no_longer_runs(name, standing or level, 1)
        if moves.is_canceled(q, job) then
          moves.end_canceled(q, tenant, level, lane, job)
        else
          moves.stalled(q, tenant, level, lane, sequence, job, text or flat[i + 1])
        end
        brought_back = brought_back + 1
      end
      expired_leases[#expired_leases + 1] = member
      expired_leases[#expired_leases + 1] = claim_key
    end
  end
end

local function fall_due()
  local jobs = redis.call("ZRANGEBYSCORE", delayed_key, "-inf", now, "LIMIT", 0, DUE_AT_ONCE)
  if #jobs == 0 then
    return
  end
  local texts = redis.call("HMGET", aside_key, unpack(jobs))
  for i, job in ipairs(jobs) do
    local level, lane, _, name = places.parse(job)
    local tenant = tenants.load(q, name)
    tenant.delayed, tenant.waiting = tenant.delayed - 1, tenant.waiting + 1
    q.delayed, q.waiting = q.delayed - 1, q.waiting + 1
    lanes.fall_due(q, tenant, level, lane, job, texts[i])
    tenants.settle(q, tenant)
    q.undelayed[i] = job
  end
end

local function unpark()
  for _, name in ipairs(redis.call("ZRANGE", unparking_key, 0, DUE_AT_ONCE - 1)) do
    tenants.unpark(q, tenants.load(q, name))
  end
  for _, name in ipairs(redis.call("ZRANGEBYSCORE", parked_key, "-inf", now, "LIMIT", 0, DUE_AT_ONCE)) do
    tenants.unpark(q, tenants.load(q, name))
  end
end

local function put_back_in_line()
  for _, tenant in ipairs(q.tenants and q.tenants.list or {}) do
    for standing, stand in pairs(tenant.at) do
      if stand.present and not stand.was_present then
        turns.insert(q, standing, tenant.name, stand.score)
      end
    end
  end
end

-- 3. The claim: whose turn it is, what the limits allow, which jobs.

local claim = {
  left = wanted, looks = 0, jobs = {}, fence = 0, fresh = nil, wait_until = time.NEVER,
}

local function open_levels()
  local open = {}
  for level in string.gmatch(levels_served, "%l+") do
    if q["paused:" .. level] == 0 then
      open[#open + 1] = level
    end
  end
  return q.paused == 0 and open or {}
end

-- All lines of a tenant with an override stand on one level, its high ones first there. What stood on another level
-- than its own carries that before its record.
local function take_overridden(tenant, standing, count)
  local got, is_held = 0, false
  for _, level in ipairs(queue.LEVELS) do
    if got < count and tenant.at[level].lanes > 0 then
      local from = #claim.jobs
      local n, held = lanes.take(q, tenant, level, count - got, claim.jobs)
      got, is_held = got + n, is_held or held
      claim.rotates = level
      if level ~= standing then
        for i = from + 2, #claim.jobs, 2 do
          claim.jobs[i] = "^" .. standing .. "\n" .. claim.jobs[i]
        end
      end
    end
  end
  return got, is_held
end

local function take(tenant, standing, count)
  if tenant.fields.override then
    return take_overridden(tenant, standing, count)
  end
  claim.rotates = standing
  return lanes.take(q, tenant, standing, count, claim.jobs)
end

local function account(tenant, standing, stand, got)
  tenant.waiting, q.waiting = tenant.waiting - got, q.waiting - got
  tenants.runs(q, tenant.name, standing, got)
  local virtual, weights = "virtual:" .. standing, q["weights:" .. standing]
  q[virtual] = q[virtual] + math.floor(got * 1e9 / math.max(weights, 1))
  stand.received = stand.received + got
  stand.used = stand.used + got * 1000
  stand.changed = true
  stand.longest = math.max(stand.longest, now - stand.since)
  stand.since = now
end

-- One tenant's turn, or what is left of it. It goes back in line unless it is empty, parked or held.
local function serve(name, score, standing, allowed, is_guarded)
  local tenant = tenants.load(q, name)
  local stand = tenant.at[standing]
  stand.score = score or stand.score
  local own = limits.of_tenant(q, tenant)
  local free, until_us, limit = limits.available(own)
  if free == 0 then
    tenants.park(q, tenant, until_us, limit)
    return
  end
  local size = q.settings.quantum * tenant.weight * 1000
  local rest = math.ceil((size - stand.used) / 1000)
  local got, is_held = take(tenant, standing, math.min(claim.left, rest, allowed, free))
  if got > 0 then
    if claim.fence == 0 then
      claim.fence = queue.next_fence(q)
    end
    claim.left = claim.left - got
    local jitter = limits.charge(q, tenant, standing, got, claim.fence)
    if jitter then
      claim.fresh = math.min(claim.fresh or jitter, jitter)
    end
    account(tenant, standing, stand, got)
  end
  local is_over = stand.used >= size or (is_guarded and got > 0)
  if is_over then
    stand.used, stand.changed = math.max(0, math.floor(stand.used - size)), true
    if got > 0 then
      lanes.rotate(q, tenant, claim.rotates)
    end
  end
  if not tenants.has_work(tenant, standing) then
    tenants.settle(q, tenant)
    return
  end
  local is_parked
  if #own > 0 then
    free, until_us, limit = limits.available(own)
    is_parked = free == 0
  end
  if is_over or (is_parked and got > 0) then
    tenants.set_score(stand, tenants.new_score(q, tenant))
  end
  if is_parked then
    stand.used, stand.changed = 0, true
    tenants.park(q, tenant, until_us, limit)
  elseif not is_held and (got > 0 or is_over) then
    -- Without a job it has let a turn pass that its small weight owed: its next may come in this very claim.
    turns.insert(q, standing, name, stand.score)
  end
end

-- The next tenant: normally of this level; every tenth turn goes to one that is overdue, wherever it stands.
local function next_turn(level, levels)
  if q.settings.max_wait > 0 and (q.turns + 1) % GUARD_EVERY == 0 then
    local overdue_level, overdue = turns.overdue(q, levels)
    if overdue then
      q.turns = q.turns + 1
      return overdue, nil, overdue_level, true
    end
  end
  local name, score = turns.next(q, level)
  if name and tenants.load(q, name).at[level].used == 0 then
    q.turns = q.turns + 1
  end
  return name, score, level, false
end

-- Serves one level until it has nobody, the limits close it or the hands are full.
local function claim_level(level, levels)
  while claim.left > 0 and claim.looks < LOOKS and q.bytes_left > 0 do
    local queue_free = limits.available(q.limits.queue)
    if queue_free == 0 then
      claim.is_closed = true
      claim.wait_until = limits.batch_instant(q.limits.queue, claim.left)
      return
    end
    local level_free = limits.available(q.limits[level])
    if level_free == 0 then
      claim.wait_until = math.min(claim.wait_until, limits.batch_instant(q.limits[level], claim.left))
      return
    end
    local name, score, standing, is_guarded = next_turn(level, levels)
    if not name then
      return
    end
    claim.looks = claim.looks + 1
    if standing ~= level then
      level_free = limits.available(q.limits[standing])
    end
    if level_free > 0 then
      serve(name, score, standing, math.min(queue_free, level_free), is_guarded)
    end
  end
end

finish_all()
reap()
fall_due()
unpark()
moves.settle_given_back(q)
local levels = open_levels()
if wanted > 0 and #levels > 0 then
  put_back_in_line()
  for _, level in ipairs(levels) do
    if not claim.is_closed then
      claim_level(level, levels)
    end
  end
end

-- 4. When to come again, and who else should.

local function earliest(key, current)
  local found = redis.call("ZRANGE", key, 0, 0, "WITHSCORES")
  return found[2] and math.min(current, tonumber(found[2])) or current
end

-- What ran out or fell due in this very script is handled; the rest of the sets says when anything happens next.
local function next_instant()
  if claim.is_closed then
    return math.min(claim.wait_until, earliest(leases_key, time.NEVER))
  end
  local instant = claim.wait_until
  for _, tenant in ipairs(q.tenants and q.tenants.list or {}) do
    instant = math.min(instant, tenant.parked_until or instant)
  end
  local function after(key)
    local after_now = string.format("(%.0f", now)
    local found = redis.call("ZRANGEBYSCORE", key, after_now, "+inf", "WITHSCORES", "LIMIT", 0, 1)
    return found[2] and tonumber(found[2]) or time.NEVER
  end
  return math.min(instant, after(parked_key), after(delayed_key), after(leases_key))
end

local function anyone_ready()
  local ready = 0
  for _, level in ipairs(levels) do
    ready = ready + redis.call("ZCARD", q.keys.ready[level])
  end
  for _, tenant in ipairs(q.tenants and q.tenants.list or {}) do
    for _, stand in pairs(tenant.at) do
      ready = ready + (stand.present and 1 or 0) - (stand.was_present and 1 or 0)
    end
  end
  return ready > 0
end

local word = #claim.jobs > 0 and "claimed" or "idle"
local is_bounded = claim.looks >= LOOKS or brought_back >= STALLED_AT_ONCE or #q.undelayed >= DUE_AT_ONCE
local hands_left = idle_for > 0 and claim.left > 0
if claim.left > 0 and word == "idle" and is_bounded then
  word = "again"
end

local wait, holds_alarm, sleeper, instant = -1, 0, nil, nil
if hands_left then
  instant = next_instant()
  if word ~= "again" and is_bounded then
    wait = 0
  elseif instant < time.NEVER then
    wait = math.max(0, instant - now)
    local alarm_instant, holder = waking.alarm(q)
    holds_alarm = (not alarm_instant or holder == client or instant < alarm_instant) and 1 or 0
  end
else
  sleeper = waking.find(q)
  if sleeper and (claim.is_closed or not anyone_ready()) then
    local _, holder = waking.alarm(q)
    if holder and holder ~= client then
      sleeper = nil
    elseif not claim.is_closed and q.waiting + q.delayed + q.running == 0 then
      sleeper = nil
    end
  end
end
moves.close(q)

-- 5. Only now does anything change.

if #claim.jobs > 0 then
  redis.call("HSET", prefix .. "claim:" .. string.format("%d", claim.fence), unpack(claim.jobs))
  redis.call("ZADD", leases_key, now + lease, string.format("%d:%s", claim.fence, client))
end
for fence, ended in pairs(ended_in) do
  if #ended.jobs > 0 then
    redis.call("HDEL", ended.claim_key, unpack(ended.jobs))
  end
  if redis.call("EXISTS", ended.claim_key) == 0 then
    redis.call("ZREM", leases_key, fence .. ":" .. client)
  end
end
for i = 1, #expired_leases, 2 do
  redis.call("ZREM", leases_key, expired_leases[i])
  redis.call("UNLINK", expired_leases[i + 1])
end
lanes.save(q)
moves.save(q)
limits.save(q)
tenants.save(q)
queue.save(q)
if hands_left then
  redis.call("ZREMRANGEBYSCORE", idle_key, "-inf", now)
  redis.call("ZADD", idle_key, now + idle_for, client)
  if holds_alarm == 1 then
    waking.set_alarm(q, client, instant)
  end
else
  redis.call("ZREM", idle_key, client)
  if sleeper and sleeper ~= client then
    waking.wake(q, sleeper)
  end
end
local fresh = claim.fresh and math.floor(claim.fresh * FRESH_SHARE) or 0
local reply = { word, stale, wait, holds_alarm, string.format("%d", claim.fence), fresh, {} }
requests.remember(client_key, request, reply)
reply[7] = claim.jobs
return reply
