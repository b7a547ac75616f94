#!lua
-- Puts jobs at the end of their lanes, many tenants at once, and wakes an idle worker if any of them had none.
-- Replies {"accepted", accepted, duplicates, firsts, full, closed}: `firsts` has the first sequence given in each line,
-- `full` the position of each line that did not fit and how many of its jobs were taken, `closed` the position of each
-- line whose action takes no more jobs. Or {"unregistered"}.
local time = require "time"
local queue = require "queue"
local tenants = require "tenants"
local standing = require "standing"
local lanes = require "lanes"
local ids = require "ids"
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
local ids_key = KEYS[12] -- hash: period → ids given in it
local idle_key = KEYS[13] -- zset: client → until when it is known to wait
local alarm_key = KEYS[14] -- string: instant:client
local client_key = KEYS[15] -- hash: replies to the client's last requests
local running_key = KEYS[16] -- hash: tenant → jobs that run
local events_key = KEYS[17] -- stream: what happened
local duties_key = KEYS[18] -- zset: duty → when it may be taken
local duty_tries_key = KEYS[19] -- hash: duty → how often it was tried in vain
local now_given = ARGV[1] -- µs; empty: the server's time
local request = tonumber(ARGV[2]) -- number of the client's request
local lines, lines_from = ARGV, 3 -- list: tenant, level, lane, base priority or empty, kind, count, then the jobs:
-- "fresh": record; "named": digest, record; "later": +µs from now or @µs, digest or empty, record

local known = requests.recall(client_key, request)
if known then
  return known
end
local now = time.now(now_given)
local q = queue.open({
  prefix = string.sub(queue_key, 1, -6), queue = queue_key,
  ready = { high = ready_high_key, normal = ready_normal_key, low = ready_low_key },
  since = { high = since_high_key, normal = since_normal_key, low = since_low_key },
  parked = parked_key, unparking = unparking_key, aside = aside_key, ids = ids_key, idle = idle_key, alarm = alarm_key,
  running = running_key, events = events_key, duties = duties_key, duty_tries = duty_tries_key,
}, now)
if not q then
  return { "unregistered" }
end

local accepted, duplicates, firsts, full, closed = 0, 0, {}, {}, {}
local pushes, later, earliest = {}, {}, time.NEVER

-- How many more jobs the tenant and the queue may have pending.
local function room_of(tenant)
  local settings = q.settings
  local of_queue = settings.max_pending > 0 and settings.max_pending - q.waiting - q.delayed or math.huge
  local of_tenant = settings.max_pending_tenant > 0 and settings.max_pending_tenant - tenant.waiting - tenant.delayed
    or math.huge
  return math.max(0, math.min(of_queue, of_tenant))
end

local function digest_is_new(lane, digest)
  if ids.find(q, ids.open(q, lane.action), digest) then
    duplicates = duplicates + 1
    return false
  end
  return true
end

-- A tenant that had nothing to do starts to count anew.
local function add_to_total(tenant, count)
  if tenant.total > 0 and tenant.waiting + tenant.delayed == 0 and tenants.running(q, tenant) == 0 then
    tenant.total = 0
  end
  tenant.total = tenant.total + count
end

local function append(tenant, lane, count)
  add_to_total(tenant, count)
  tenant.waiting, q.waiting = tenant.waiting + count, q.waiting + count
  if lane.action then
    local actions = require "actions"
    actions.accept(lane.action, "waiting", count)
  end
  return lanes.append(q, tenant, lane, count)
end

-- Each answers the first sequence and how many of the line's jobs were dealt with.

local function submit_fresh(tenant, lane, from, count)
  local taken = math.min(count, room_of(tenant))
  if taken == 0 then
    return "0", 0
  end
  pushes[#pushes + 1] = { lane = lane, values = lines, from = from, to = from + taken - 1 }
  accepted = accepted + taken
  return string.format("%.0f", append(tenant, lane, taken)), taken
end

local function submit_named(tenant, lane, from, count)
  local texts, digests, room = {}, {}, room_of(tenant)
  local dealt_with = count
  local seen = {}
  for i = 0, count - 1 do
    local digest = lines[from + 2 * i]
    if seen[digest] then
      duplicates = duplicates + 1
    elseif digest_is_new(lane, digest) then
      if #texts == room then
        dealt_with = i
        break
      end
      seen[digest] = true
      digests[#digests + 1] = digest
      texts[#texts + 1] = lines[from + 2 * i + 1]
    end
  end
  if #texts == 0 then
    return "0", dealt_with
  end
  local first = append(tenant, lane, #texts)
  for i, digest in ipairs(digests) do
    ids.add(ids.open(q, lane.action), digest, string.format("%s:%s:%.0f", lane.level, lane.token, first + i - 1))
  end
  pushes[#pushes + 1] = { lane = lane, values = texts, from = 1, to = #texts }
  accepted = accepted + #texts
  return string.format("%.0f", first), dealt_with
end

local function submit_later(tenant, lane, from, count)
  local first
  local room = room_of(tenant)
  for i = 0, count - 1 do
    local instant, digest, text = lines[from + 3 * i], lines[from + 3 * i + 1], lines[from + 3 * i + 2]
    if digest == "" or digest_is_new(lane, digest) then
      if room == 0 then
        return first or "0", i
      end
      room = room - 1
      -- A leading zero keeps these numbers apart from those of the lane's list.
      local sequence = string.format("0%.0f", queue.tick(q))
      local job = string.format("%s:%s:%s:%s", lane.level, lane.token, sequence, tenant.name)
      if digest ~= "" then
        ids.add(ids.open(q, lane.action), digest, string.format("%s:%s:%s", lane.level, lane.token, sequence))
      end
      local is_relative = string.byte(instant) == 43
      local due = (is_relative and now or 0) + tonumber(string.sub(instant, 2))
      later[#later + 1] = { job = job, text = text, due = due }
      earliest = math.min(earliest, due)
      add_to_total(tenant, 1)
      tenant.delayed, q.delayed = tenant.delayed + 1, q.delayed + 1
      if lane.action then
        local actions = require "actions"
        actions.accept(lane.action, "delayed", 1)
      end
      accepted = accepted + 1
      first = first or sequence
    end
  end
  return first or "0", count
end

local function is_closed(action)
  local actions = require "actions"
  return actions.is_closed(action)
end

local function receive(action, count)
  local actions = require "actions"
  actions.receive(q, action, count)
end

local SUBMIT = {
  fresh = { submit = submit_fresh, width = 1 },
  named = { submit = submit_named, width = 2 },
  later = { submit = submit_later, width = 3 },
}

local at, line = lines_from, 0
while lines[at] do
  local kind, count = SUBMIT[lines[at + 4]], tonumber(lines[at + 5])
  local tenant = tenants.load(q, lines[at])
  local lane = lanes.open(q, tenant, lines[at + 1], lines[at + 2])
  if lines[at + 3] ~= "" then
    standing.rebase(tenant, tonumber(lines[at + 3]))
    tenants.set(tenant, "base", tenant.base ~= 0 and tenant.base or nil)
  end
  local first, dealt_with = "0", count
  if lane.action and is_closed(lane.action) then
    closed[#closed + 1] = line
  else
    first, dealt_with = kind.submit(tenant, lane, at + 6, count)
    if lane.action then
      receive(lane.action, dealt_with)
    end
  end
  firsts[#firsts + 1] = first
  if dealt_with < count then
    full[#full + 1] = line
    full[#full + 1] = dealt_with
  end
  standing.settle(q, tenant)
  at = at + 6 + count * kind.width
  line = line + 1
end

local sleeper = waking.find(q)
if sleeper then
  local is_new = false
  for _, tenant in ipairs(q.tenants.list) do
    for _, stand in pairs(tenant.at) do
      is_new = is_new or (stand.present and not stand.was_present)
    end
  end
  if not is_new and earliest >= (waking.alarm(q) or time.NEVER) then
    sleeper = nil
  end
end

if q.actions then
  local actions = require "actions"
  actions.close(q)
end

for _, push in ipairs(pushes) do
  redis.call("RPUSH", push.lane.key, unpack(push.values, push.from, push.to))
end
for _, job in ipairs(later) do
  redis.call("HSET", aside_key, job.job, job.text)
  redis.call("ZADD", delayed_key, job.due, job.job)
end
queue.count(q, "submitted", accepted)
lanes.save(q)
if q.ids then
  ids.save(q, q.ids)
end
if q.actions then
  local actions = require "actions"
  actions.save(q)
end
tenants.save(q)
queue.save(q)
if sleeper then
  waking.wake(q, sleeper)
end
return requests.remember(client_key, request, { "accepted", accepted, duplicates, firsts, full, closed })
