-- Where jobs go that are neither in a lane nor claimed: aside (with an instant in `delayed`, or a place in a front
-- list), among the dead letters, or away. Moves are collected while reading and written together.
local queue = require "queue"
local record = require "record"
local places = require "places"
local fronts = require "fronts"
local lanes = require "lanes"
local standing = require "standing"
local events = require "events"
local expiring = require "expiring"

local moves = {}

local TRIMMED_AT_ONCE = 100

local LISTS = {
  "set_aside", "unset_aside", "delayed_at", "undelayed", "dropped", "buried", "given_back", "unmarked",
}

-- Lanes may have begun lists of their own (see fronts.lua).
function moves.open(q)
  if not q.moves then
    q.moves = true
    for _, name in ipairs(LISTS) do
      q[name] = q[name] or {}
    end
  end
end

-- Until the instant, with the reason in the record's history.
function moves.postpone(q, tenant, job, text, due)
  moves.open(q)
  local aside, delayed = q.set_aside, q.delayed_at
  aside[#aside + 1] = job
  aside[#aside + 1] = text
  delayed[#delayed + 1] = due
  delayed[#delayed + 1] = job
  tenant.delayed = tenant.delayed + 1
  q.delayed = q.delayed + 1
end

-- To the front of its lane, once all that come back are known (they keep their order).
function moves.give_back(q, tenant, level, lane, sequence, job, text)
  moves.open(q)
  q.given_back[#q.given_back + 1] =
    { tenant = tenant, level = level, lane = lane, sequence = tonumber(sequence), job = job, text = text }
  tenant.waiting, tenant.has_grown = tenant.waiting + 1, true
  q.waiting = q.waiting + 1
end

function moves.settle_given_back(q)
  if #q.given_back == 0 then
    return
  end
  table.sort(q.given_back, function(a, b)
    if a.sequence ~= b.sequence then
      return a.sequence > b.sequence
    end
    return a.job > b.job
  end)
  for _, back in ipairs(q.given_back) do
    fronts.give_back(q, back.tenant, lanes.open(q, back.tenant, back.level, back.lane), back.job, back.text)
    standing.settle(q, back.tenant)
  end
end

-- The job has ended, one way or another.
function moves.ended(q, tenant, level, lane, job)
  if places.is_ordered(lane) then
    fronts.release(q, tenant, lanes.open(q, tenant, level, lane), job)
    standing.settle(q, tenant)
  end
end

-- For whoever follows the queue's events.
function moves.tell(q, kind, job, reason)
  local _, lane, _, tenant = places.parse(job)
  local action = places.action_of(lane)
  if action then
    events.add(q, kind, { "tenant", tenant, "action", action, "job", job, "reason", reason })
  else
    events.add(q, kind, { "tenant", tenant, "job", job, "reason", reason })
  end
end

-- A dead letter: kept with its reason, and with its whole record for whoever retries it.
function moves.bury(q, job, text, reason)
  moves.open(q)
  local buried = q.buried
  buried[#buried + 1] = job
  buried[#buried + 1] = string.format("%.0f,%s\n", math.floor(q.now / 1000), reason) .. text
  queue.count(q, "failed", 1)
  moves.tell(q, "job.dead", job, reason)
end

-- Of a job that ran.
local function is_canceled(q, job)
  return q.canceling > 0 and redis.call("ZSCORE", q.keys.canceled, job) ~= false
end

-- The job succeeded before its worker heard that it was cancelled.
function moves.unmark(q, job)
  moves.open(q)
  if is_canceled(q, job) then
    q.canceling = q.canceling - 1
    q.unmarked[#q.unmarked + 1] = job
  end
end

-- A job that was cancelled while it ran, or whose action is over by now, ends as canceled when it comes back, unless it
-- succeeded. Answers whether it did.
function moves.end_canceled(q, tenant, level, lane, job, is_action_over)
  local is_marked = is_canceled(q, job)
  if not is_marked and not is_action_over then
    return false
  end
  moves.open(q)
  if is_marked then
    q.canceling = q.canceling - 1
  end
  q.dropped[#q.dropped + 1] = job
  queue.count(q, "canceled", 1)
  moves.ended(q, tenant, level, lane, job)
  return true
end

-- A lease ran out under this job: at the front again, the k-th time after 2^(k-1) - 1 s, in the end a dead letter.
-- Answers where it is now: waiting, delayed or failed.
function moves.stalled(q, tenant, level, lane, sequence, job, text)
  local attempts, stalls, throttles, _, _, error = record.history(text)
  stalls = stalls + 1
  queue.count(q, "stalled", 1)
  moves.tell(q, "job.stalled", job, "lease")
  text = record.with_history(text, attempts, stalls, throttles, math.floor(q.now / 1000), "stall", error)
  if stalls > q.settings.max_stalls then
    moves.bury(q, job, text, "stalled")
    moves.ended(q, tenant, level, lane, job)
    return "failed"
  end
  local wait = 2 ^ (stalls - 1) - 1
  if wait == 0 then
    moves.give_back(q, tenant, level, lane, sequence, job, text)
    return "waiting"
  end
  moves.postpone(q, tenant, job, text, q.now + wait * 1000000)
  return "delayed"
end

-- Read before the first write.
local function expired_letters(q)
  if #q.buried == 0 then
    return {}
  end
  return expiring.find(q, TRIMMED_AT_ONCE)
end

local function expired_marks(q)
  if #q.dropped == 0 then
    return {}
  end
  return redis.call("ZRANGEBYSCORE", q.keys.canceled, "-inf", q.now, "LIMIT", 0, TRIMMED_AT_ONCE)
end

-- The last reads; moves.save writes what they found.
function moves.close(q)
  moves.open(q)
  q.expired_letters, q.expired_marks = expired_letters(q), expired_marks(q)
end

function moves.save(q)
  if #q.set_aside > 0 then
    redis.call("HSET", q.keys.aside, unpack(q.set_aside))
    redis.call("ZADD", q.keys.delayed, unpack(q.delayed_at))
  end
  if #q.undelayed > 0 then
    redis.call("ZREM", q.keys.delayed, unpack(q.undelayed))
  end
  if #q.unset_aside > 0 then
    redis.call("HDEL", q.keys.aside, unpack(q.unset_aside))
  end
  if #q.expired_letters > 0 then
    expiring.forget(q, q.expired_letters)
  end
  for i = 1, #q.buried, 2 do
    redis.call("HSET", q.keys.dead_jobs, q.buried[i], q.buried[i + 1])
    redis.call("ZADD", q.keys.dead, q.now, q.buried[i])
  end
  if #q.expired_marks > 0 then
    redis.call("ZREM", q.keys.canceled, unpack(q.expired_marks))
  end
  if #q.unmarked > 0 then
    redis.call("ZREM", q.keys.canceled, unpack(q.unmarked))
  end
  for _, job in ipairs(q.dropped) do
    redis.call("ZADD", q.keys.canceled, q.now + q.settings.keep_ids, job)
  end
end

return moves
