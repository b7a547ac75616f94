-- Putting new jobs at the end of their lanes: what submitting them and the ticks of schedules have in common. Lines are
-- dealt with one after the other while the script reads; all of them are written at the end.
local time = require "time"
local queue = require "queue"
local tenants = require "tenants"
local standing = require "standing"
local lanes = require "lanes"
local ids = require "ids"
local actions = require "actions"
local waking = require "waking"

local submitting = {}

local frexp, huge, RANKED_FROM = math.frexp, math.huge, tenants.RANKED_FROM

function submitting.open(q)
  q.entered = {}
  return { accepted = 0, duplicates = 0, pushes = {}, later = {}, earliest = time.NEVER }
end

-- How many more jobs the tenant and the queue may have pending.
local function room_of(q, tenant)
  local of_queue, of_tenant, room = q.settings.max_pending, q.settings.max_pending_tenant, huge
  if of_queue > 0 then
    room = of_queue - q.waiting - q.delayed
  end
  if of_tenant > 0 and of_tenant - tenant.waiting - tenant.delayed < room then
    room = of_tenant - tenant.waiting - tenant.delayed
  end
  return room > 0 and room or 0
end

local function digest_is_new(q, batch, lane, digest)
  if ids.find(q, ids.open(q, lane.action), digest) then
    batch.duplicates = batch.duplicates + 1
    return false
  end
  return true
end

-- A tenant that had nothing to do starts to count anew.
local function add_to_total(q, tenant, count)
  if tenant.total > 0 and tenant.waiting + tenant.delayed == 0 and tenants.running(q, tenant) == 0 then
    tenant.total = 0
  end
  tenant.total = tenant.total + count
end

local function append(q, tenant, lane, count)
  add_to_total(q, tenant, count)
  local before = tenant.waiting
  tenant.waiting, q.waiting = before + count, q.waiting + count
  -- Its rank goes by binary digits (see tenants.lua): a job more is rarely one of them.
  if tenant.waiting >= RANKED_FROM and not tenant.has_grown then
    local _, digits_before = frexp(before)
    local _, digits = frexp(tenant.waiting)
    tenant.has_grown = digits > digits_before
  end
  if lane.action then
    actions.accept(lane.action, "waiting", count)
  end
  return lanes.append(q, tenant, lane, count)
end

-- Noted, to be written at the end: lane, values, from and to, by turns.
local function push(batch, lane, values, from, to)
  local pushes = batch.pushes
  local at = #pushes
  pushes[at + 1], pushes[at + 2], pushes[at + 3], pushes[at + 4] = lane, values, from, to
end

-- Each answers the first sequence and how many of the line's jobs were dealt with.

local function submit_fresh(q, batch, tenant, lane, values, from, count)
  local room = room_of(q, tenant)
  local taken = count < room and count or room
  if taken == 0 then
    return "0", 0
  end
  push(batch, lane, values, from, from + taken - 1)
  batch.accepted = batch.accepted + taken
  return string.format("%d", append(q, tenant, lane, taken)), taken
end

local function submit_named(q, batch, tenant, lane, values, from, count)
  local texts, digests, room = {}, {}, room_of(q, tenant)
  local dealt_with = count
  local seen = {}
  for i = 0, count - 1 do
    local digest = values[from + 2 * i]
    if seen[digest] then
      batch.duplicates = batch.duplicates + 1
    elseif digest_is_new(q, batch, lane, digest) then
      if #texts == room then
        dealt_with = i
        break
      end
      seen[digest] = true
      digests[#digests + 1] = digest
      texts[#texts + 1] = values[from + 2 * i + 1]
    end
  end
  if #texts == 0 then
    return "0", dealt_with
  end
  local first = append(q, tenant, lane, #texts)
  for i, digest in ipairs(digests) do
    ids.add(ids.open(q, lane.action), digest, string.format("%s:%s:%.0f", lane.level, lane.token, first + i - 1))
  end
  push(batch, lane, texts, 1, #texts)
  batch.accepted = batch.accepted + #texts
  return string.format("%.0f", first), dealt_with
end

local function submit_later(q, batch, tenant, lane, values, from, count)
  local first
  local room = room_of(q, tenant)
  for i = 0, count - 1 do
    local instant, digest, text = values[from + 3 * i], values[from + 3 * i + 1], values[from + 3 * i + 2]
    if digest == "" or digest_is_new(q, batch, lane, digest) then
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
      local due = (is_relative and q.now or 0) + tonumber(string.sub(instant, 2))
      batch.later[#batch.later + 1] = { job = job, text = text, due = due }
      batch.earliest = math.min(batch.earliest, due)
      add_to_total(q, tenant, 1)
      tenant.delayed, q.delayed = tenant.delayed + 1, q.delayed + 1
      if lane.action then
        actions.accept(lane.action, "delayed", 1)
      end
      batch.accepted = batch.accepted + 1
      first = first or sequence
    end
  end
  return first or "0", count
end

local SUBMIT = {
  fresh = { submit = submit_fresh, width = 1 },
  named = { submit = submit_named, width = 2 },
  later = { submit = submit_later, width = 3 },
}

-- How many values a job of that kind takes.
function submitting.width(kind)
  return SUBMIT[kind].width
end

-- Jobs of one kind for one lane: `count` of them from `from` on in `values`. Answers the first sequence given, nil when
-- the action of the lane takes no more; how many were dealt with, fewer than `count` when there is no room; and where
-- the next line begins.
function submitting.line(q, batch, tenant, lane, kind, values, from, count)
  local how, first, dealt_with = SUBMIT[kind], nil, count
  if not lane.action then
    first, dealt_with = how.submit(q, batch, tenant, lane, values, from, count)
  else
    if not actions.is_closed(lane.action) then
      first, dealt_with = how.submit(q, batch, tenant, lane, values, from, count)
      actions.receive(q, lane.action, dealt_with)
    end
  end
  -- One that is in line there already stays where it is. Where it has an override, the line is another one.
  if not lane.line.present or tenant.fields.override then
    standing.settle(q, tenant)
  end
  return first, dealt_with, from + count * how.width
end

-- Whom to wake, read before the first write: somebody, if there is work where there was none or something is due before
-- the alarm that is held.
function submitting.sleeper(q, batch)
  local levels, entered = {}, q.entered
  for i = 1, #entered, 2 do
    local stand = entered[i].at[entered[i + 1]]
    if stand.present and not stand.was_present then
      levels[entered[i + 1]] = true
    end
  end
  if not next(levels) and batch.earliest == time.NEVER then
    return nil
  end
  local for_later = waking.find_for(q, batch.earliest)
  if for_later or not next(levels) then
    return for_later
  end
  return waking.find(q, nil, levels)
end

function submitting.save(q, batch)
  local pushes = batch.pushes
  for i = 1, #pushes, 4 do
    redis.call("RPUSH", pushes[i].key, unpack(pushes[i + 1], pushes[i + 2], pushes[i + 3]))
  end
  for _, job in ipairs(batch.later) do
    redis.call("HSET", q.keys.aside, job.job, job.text)
    redis.call("ZADD", q.keys.delayed, job.due, job.job)
  end
  queue.count(q, "submitted", batch.accepted)
  lanes.save(q)
  if q.ids then
    ids.save(q, q.ids)
  end
  if q.actions then
    actions.save(q)
  end
  tenants.save(q)
  queue.save(q)
end

return submitting
