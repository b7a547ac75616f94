#!lua flags=allow-oom
-- Takes back what a worker has finished and leases it the next jobs of the fairest tenants, as many as their limits
-- allow: the one round trip of a busy worker. Brings back what is due on the way, a bounded number at once.
-- Replies {word, stale, wait, alarm, fence, fresh, jobs, duties, kept, ticks, snapshot, left}: word is "claimed" or
-- "idle", or "again" (more may be claimable at once), or alone: {"unregistered"}; {"unnamed"}: a claim is told of as
-- a whole and its jobs must be named, nothing was done. `stale` holds the positions of finished jobs that are no
-- longer the caller's, `wait` is the time in µs until the next claim can bring anything (-1: unknown), `alarm` 1 if
-- the caller is to claim then, `fresh` how long the grants keep in µs (0: for ever), `jobs` is one text of job,
-- record, for each, with SEPARATOR between them; one that stood on another level than its own, or that a pool
-- granted, has "^<level>", "&<limit>=<member>" for each pool, and a line break before its record. `duties` is 1 when
-- a duty is due, `ticks` 1 when schedules are, `kept` has the lanes ("<lane>:<tenant>") among the claimed whose
-- action keeps results, `snapshot` 1 when the caller is to record the queue's congestion (see record-congestion),
-- `left` the time in µs when leases that ran out were not taken back because the caller may not, or those of a queue
-- that shares a limit were not left out of its count, and missing otherwise.
local time = require "time"
local decimal = require "decimal"
local queue = require "queue"
local requests = require "requests"
local tenants = require "tenants"
local lanes = require "lanes"
local finishing = require "finishing"
local claiming = require "claiming"
local claimed = require "claimed"
local limits = require "limits"
local recovery = require "recovery"
local standing = require "standing"
local moves = require "moves"
local endings = require "endings"
local comeback = require "comeback"
local pace = require "pace"
local waking = require "waking"
local part_time = require "part_time"
local group = require "group"
local schedules = require "schedules"
local actions = require "actions"
local duties = require "duties"
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
local idle_key = KEYS[17] -- zset: client, and the levels it serves unless all → until when it is known to wait
local alarm_key = KEYS[18] -- string: instant:client
local running_key = KEYS[19] -- hash: tenant → jobs that run
local client_key = KEYS[20] -- hash: replies to the client's last requests
local events_key = KEYS[21] -- stream: what happened
local duties_key = KEYS[22] -- zset: duty → when it may be taken
local duty_tries_key = KEYS[23] -- hash: duty → how often it was tried in vain
local backlog_key = KEYS[24] -- zset: tenant → binary digits of how many of its jobs wait
local group_limits_key = KEYS[25] -- hash: limits shared with other queues
local group_queues_key = KEYS[26] -- zset: queues of the group
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
local known_since = ARGV[11] -- when the store came to know the queue, as the caller was told; empty: it does not say
local takes_back_until = ARGV[12] -- µs: it takes back leases that ran out until then, and none if it comes later
local finished, finished_from = ARGV, 13 -- list: how many lessons, these (see the module of that name); how many
-- claims had successes; of each its fence, jobs not told of
-- before, how many succeeded, how many are named (all or none), these, and how many groups they are in; of each group
-- its tenant, the level it stood on, its lane if that is an action's, and how many; for an action also measures, how
-- many results, and these. Then for every other job: fence, job, level it stood on, outcome, µs, text, and for an
-- action measures, line break, result.

local DUE_AT_ONCE = 64 -- leases, delayed jobs and unparking tenants brought back in one claim
local AT_ONCE, LAST_OF_THEM = "64", "63" -- the same for commands
local SEPARATOR = "\30" -- in neither jobs nor records; a client reads one text several times faster than a list

local now = time.now(now_given)
local now_text = string.format("%d", now)
local prefix = string.sub(queue_key, 1, -6)

local known = requests.recall(client_key, request)
if known then
  known[7] = ""
  if known[5] ~= "0" then
    known[7] = table.concat(claimed.read(prefix .. "claim:" .. known[5]), SEPARATOR)
  end
  return known
end

local q = queue.open({
  prefix = prefix, queue = queue_key,
  ready = { high = ready_high_key, normal = ready_normal_key, low = ready_low_key },
  since = { high = since_high_key, normal = since_normal_key, low = since_low_key },
  parked = parked_key, unparking = unparking_key, delayed = delayed_key, aside = aside_key, limits = limits_key,
  dead = dead_key, dead_jobs = dead_jobs_key, canceled = canceled_key, idle = idle_key, alarm = alarm_key,
  running = running_key, leases = leases_key, events = events_key, duties = duties_key, duty_tries = duty_tries_key,
  backlog = backlog_key, group_limits = group_limits_key, group_queues = group_queues_key,
}, now)
if not q or not queue.is_as_registered(q, known_since) then
  return { "unregistered" }
end
queue.notice_server(q, server)
local takes_back = now <= tonumber(takes_back_until)
if q.settings.has_limits or q.has_own_limits then
  if not limits.open(q, takes_back) then
    return { "unregistered" }
  end
end
q.runs = {}
claiming.open(q, wanted, max_bytes, has_suspect == 1)
local claim = q.claim

-- 1. What the worker has finished, and what is due.

if not finishing.run(q, finished, finished_from) then
  return { "unnamed" }
end
local is_bounded, expired, left_at = false, {}, nil
local leases = redis.call("ZRANGEBYSCORE", leases_key, "-inf", now_text, "LIMIT", "0", AT_ONCE)
if (#leases > 0 and not takes_back) or (q.group and q.group.has_stranded) then
  left_at = now_text
elseif #leases > 0 then
  expired, is_bounded = recovery.reap(q, leases)
end
local due = redis.call("ZRANGEBYSCORE", delayed_key, "-inf", now_text, "LIMIT", "0", AT_ONCE)
if #due > 0 then
  recovery.fall_due(q, due)
  is_bounded = is_bounded or #due == DUE_AT_ONCE
end
local unparking = redis.call("ZRANGE", unparking_key, "0", LAST_OF_THEM)
q.is_nobody_unparking = #unparking == 0
is_bounded = is_bounded or #unparking == DUE_AT_ONCE
for _, name in ipairs(unparking) do
  standing.unpark(q, tenants.load(q, name))
end
if q.moves then
  moves.settle_given_back(q)
end
if q.actions then
  endings.judge(q)
end

-- 2. The claim.

local levels = {}
if not q.paused then
  for level in string.gmatch(levels_served, "%l+") do
    if not q.at[level].paused then
      levels[#levels + 1] = level
    end
  end
end
local parked_due = redis.call("ZCOUNT", parked_key, "-inf", now_text)
if parked_due > 0 then
  is_bounded = comeback.run(q, parked_due, levels) or is_bounded
elseif #levels > 0 then
  claiming.run(q, levels)
end

if #claim.jobs > 0 then
  if q.slot ~= q.slot_now then
    pace.roll_queue(q)
  end
  q.starts = q.starts + #claim.jobs / 2
end

-- 3. When to come again, and who else should.

is_bounded = is_bounded or claiming.is_bounded(claim)
local word = #claim.jobs > 0 and "claimed" or claim.left > 0 and is_bounded and "again" or "idle"
local hands_left = idle_for > 0 and claim.left > 0
local wait, holds_alarm, sleeper, instant, is_anyone_idle = -1, 0, nil, nil, true
if hands_left and word == "claimed" and is_bounded then
  wait = 0
elseif hands_left then
  instant = waking.next_instant(q, leases_key)
  if instant < time.NEVER then
    wait = math.max(0, instant - now)
    holds_alarm = waking.holds_alarm(q, waking.name_of(client, levels_served), instant) and 1 or 0
  end
else
  is_anyone_idle = redis.call("EXISTS", idle_key) == 1
  if is_anyone_idle then
    sleeper = waking.helper(q, levels, waking.name_of(client, levels_served), leases_key)
  end
end
if hands_left and #levels < 3 then
  local left = part_time.add_unserved(q, levels, {})
  sleeper = next(left) and waking.find(q, waking.name_of(client, levels_served), left)
end
if q.group then
  group.close(q)
end
if q.moves or q.unset_aside or q.dropped then
  moves.close(q)
end
-- Whoever comes first when it is due: nobody is woken for it, and nothing is recorded while nothing waits.
local records, snapshot = 0, q.settings.snapshot or 10000000
if wanted > 0 and q.waiting > 0 and (now >= q.snapshot_due or now + snapshot < q.snapshot_due) then
  q.snapshot_due, records = now + snapshot, 1
end
local duties_due, ticks_due = redis.call("ZCOUNT", duties_key, "-inf", now_text), 0
if duties_due > 0 then
  ticks_due = schedules.is_duty_due(q) and 1 or 0
end
local has_duties = duties_due > ticks_due
local kept = {}
if q.actions then
  actions.close(q)
  kept = actions.lanes_kept(q)
  if q.duties then
    has_duties = has_duties or duties.are_added(q)
  end
end

-- 4. Only now does anything change.

local fence = decimal.of(claim.fence)
if #claim.jobs > 0 then
  queue.count(q, "claimed", #claim.jobs / 2)
  redis.call("HSET", prefix .. "claim:" .. fence, unpack(claim.jobs))
  redis.call("ZADD", leases_key, string.format("%d", now + lease), fence .. ":" .. client)
end
finishing.save(q, leases_key, client)
for i = 1, #expired, 2 do
  redis.call("ZREM", leases_key, expired[i])
  redis.call("UNLINK", expired[i + 1])
end
lanes.save(q)
if q.moves then
  moves.save(q)
end
if q.limits then
  limits.save(q)
end
if q.actions then
  actions.save(q)
end
tenants.save(q)
queue.save(q)
if hands_left or is_anyone_idle then
  local name = waking.name_of(client, levels_served)
  if hands_left then
    redis.call("ZREMRANGEBYSCORE", idle_key, "-inf", now)
    redis.call("ZADD", idle_key, now + idle_for, name)
  else
    redis.call("ZREM", idle_key, name)
  end
  if holds_alarm == 1 then
    waking.set_alarm(q, name, instant)
  end
  if sleeper then
    waking.wake(q, sleeper)
  end
end
local fresh = claim.fresh or 0
local reply = { word, q.stale, wait, holds_alarm, fence, fresh, {}, has_duties and 1 or 0, kept, ticks_due, records }
reply[12] = left_at
requests.remember(client_key, request, reply)
reply[7] = table.concat(claim.jobs, SEPARATOR)
return reply
