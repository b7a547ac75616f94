#!lua
-- Puts jobs at the end of their lanes, many tenants at once, and wakes an idle worker if any of them had none.
-- Replies {"accepted", accepted, duplicates, firsts, full, closed}: `firsts` has the first sequence given in each line,
-- `full` the position of each line that did not fit and how many of its jobs were taken, `closed` the position of each
-- line whose action takes no more jobs. Or {"unregistered"}, or {"costly", line, job of it, limit, most} when a limit
-- could never grant what a job costs: nothing was accepted then.
local time = require "time"
local queue = require "queue"
local tenants = require "tenants"
local standing = require "standing"
local lanes = require "lanes"
local submitting = require "submitting"
local requests = require "requests"
local pricing = require "pricing"
local actions = require "actions"
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
local ids_key = KEYS[12] -- hash: period → ids given in it
local idle_key = KEYS[13] -- zset: client → until when it is known to wait
local alarm_key = KEYS[14] -- string: instant:client
local client_key = KEYS[15] -- hash: replies to the client's last requests
local running_key = KEYS[16] -- hash: tenant → jobs that run
local events_key = KEYS[17] -- stream: what happened
local duties_key = KEYS[18] -- zset: duty → when it may be taken
local duty_tries_key = KEYS[19] -- hash: duty → how often it was tried in vain
local backlog_key = KEYS[20] -- zset: tenant → binary digits of how many of its jobs wait
local group_limits_key = KEYS[21] -- hash: limits shared with other queues
local now_given = ARGV[1] -- µs; empty: the server's time
local request = tonumber(ARGV[2]) -- number of the client's request
local has_costs = tonumber(ARGV[3]) -- 1: some of them cost more than one permit
local lines, lines_from = ARGV, 4 -- list: tenant, level, lane, base priority or empty, kind, count, then the jobs:
-- "fresh": record; "named": digest, record; "later": +µs from now or @µs, digest or empty, record

local known = requests.recall(client_key, request)
if known then
  return known
end
local q = queue.open({
  prefix = string.sub(queue_key, 1, -6), queue = queue_key,
  ready = { high = ready_high_key, normal = ready_normal_key, low = ready_low_key },
  since = { high = since_high_key, normal = since_normal_key, low = since_low_key },
  parked = parked_key, unparking = unparking_key, delayed = delayed_key, aside = aside_key, ids = ids_key,
  idle = idle_key, alarm = alarm_key, running = running_key, events = events_key, duties = duties_key,
  duty_tries = duty_tries_key, backlog = backlog_key, group_limits = group_limits_key,
}, time.now(now_given))
if not q then
  return { "unregistered" }
end

if has_costs == 1 then
  local costly = pricing.costly(q, lines, lines_from)
  if costly then
    return costly
  end
end
local firsts, full, closed = {}, {}, {}
local batch = submitting.open(q)
local at, line = lines_from, 0
while lines[at] do
  local kind, count = lines[at + 4], tonumber(lines[at + 5])
  local tenant = tenants.load(q, lines[at])
  local lane = lanes.open(q, tenant, lines[at + 1], lines[at + 2])
  if lines[at + 3] ~= "" then
    standing.rebase(tenant, tonumber(lines[at + 3]))
    tenants.set(tenant, "base", tenant.base ~= 0 and tenant.base or nil)
  end
  local first, dealt_with, following = submitting.line(q, batch, tenant, lane, kind, lines, at + 6, count)
  if not first then
    closed[#closed + 1] = line
  end
  firsts[#firsts + 1] = first or "0"
  if dealt_with < count then
    full[#full + 1] = line
    full[#full + 1] = dealt_with
  end
  at, line = following, line + 1
end

local sleeper = submitting.sleeper(q, batch)
if q.actions then
  actions.close(q)
end

submitting.save(q, batch)
if has_costs == 1 and not q.has_costs then
  redis.call("HSET", queue_key, "costs", "1")
end
if sleeper then
  waking.wake(q, sleeper)
end
return requests.remember(client_key, request, { "accepted", batch.accepted, batch.duplicates, firsts, full, closed })
