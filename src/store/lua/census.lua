-- A census of all jobs that stand in no lane, for the audit: delayed, running, dead and aside, by tenant and by action.
-- Each must be in exactly one place.
local places = require "places"
local record = require "record"
local actions = require "actions"
local auditing = require "auditing"
local queue = require "queue"
local time = require "time"

local census = {}

local function count(counts, name)
  counts[name] = (counts[name] or 0) + 1
end

function census.open(q)
  q.census = {
    delayed = {}, running = {}, levels = { high = 0, normal = 0, low = 0 }, is_delayed = {}, claim_of = {},
    all_delayed = 0, all_running = 0, canceling = 0, actions = {}, fences = {},
  }
end

local function of_action(q, name, lane, sequence)
  local action = actions.of_lane(q, name, lane, sequence)
  if not action or action.is_gone then
    return nil, action
  end
  local counts = q.census.actions[action.key]
  if not counts then
    counts = { action = action, delayed = 0, running = 0 }
    q.census.actions[action.key] = counts
  end
  return counts, action
end

-- Claims and their leases. A lease without jobs holds nothing; a claim without a lease would never be taken back.
function census.running(q, leases, fences_met)
  local c = q.census
  for _, member in ipairs(leases) do
    local fence = string.match(member, "^%d+")
    local flat = redis.call("HGETALL", q.keys.prefix .. "claim:" .. fence)
    c.fences[fence] = true
    if #flat == 0 then
      auditing.differs(q, "lease.empty", member, "jobs", "none", function()
        redis.call("ZREM", q.keys.leases, member)
      end)
    end
    for i = 1, #flat, 2 do
      census.claimed(q, fence, flat[i], flat[i + 1])
    end
  end
  for _, fence in ipairs(fences_met) do
    local flat = not c.fences[fence] and redis.call("HGETALL", q.keys.prefix .. "claim:" .. fence) or {}
    if #flat > 0 then
      auditing.differs(q, "claim.lease", fence, "a lease", "none", function()
        -- It has run out: the next claim takes its jobs back.
        redis.call("ZADD", q.keys.leases, string.format("%d", q.now), fence .. ":audit")
      end)
    end
    for i = 1, #flat, 2 do
      census.claimed(q, fence, flat[i], flat[i + 1])
    end
  end
end

function census.claimed(q, fence, job, value)
  local c = q.census
  if c.claim_of[job] then
    auditing.differs(q, "claim.twice", job, c.claim_of[job], fence, function()
      redis.call("HDEL", q.keys.prefix .. "claim:" .. fence, job)
    end)
    return
  end
  c.claim_of[job] = fence
  local level, lane, sequence, name = places.parse(job)
  local _, stood_on = record.of_claimed(value)
  count(c.running, name)
  count(c.levels, stood_on or level)
  c.all_running = c.all_running + 1
  local counts = of_action(q, name, lane, sequence)
  if counts then
    counts.running = counts.running + 1
  end
  if tonumber(redis.call("ZSCORE", q.keys.canceled, job) or 0) == time.NEVER then
    c.canceling = c.canceling + 1
  end
end

-- Delayed jobs have a record, and run nowhere. What an action has dropped with its end is counted no longer.
function census.delayed(q, jobs)
  local c = q.census
  for _, job in ipairs(jobs) do
    local _, lane, sequence, name = places.parse(job)
    if c.claim_of[job] then
      auditing.differs(q, "delayed.running", job, "one place", "two", function()
        redis.call("ZREM", q.keys.delayed, job)
        redis.call("HDEL", q.keys.aside, job)
      end)
    elseif redis.call("HEXISTS", q.keys.aside, job) == 0 then
      auditing.differs(q, "delayed.record", job, "a record", "none", function()
        redis.call("ZREM", q.keys.delayed, job)
        -- It has ended somehow; nobody can say more.
        queue.count(q, "canceled", 1)
      end)
    else
      c.is_delayed[job] = true
      local counts, action = of_action(q, name, lane, sequence)
      if not (action and actions.is_over(action)) then
        count(c.delayed, name)
        c.all_delayed = c.all_delayed + 1
        if counts then
          counts.delayed = counts.delayed + 1
        end
      end
    end
  end
end

-- A record aside belongs to a job that is delayed, came back to the front of its lane, or is being freed. One that
-- belongs to none is a job in no place: it is due now.
function census.aside(q, jobs, trash)
  local c, is_freed = q.census, {}
  for _, name in ipairs(trash) do
    for _, job in ipairs(redis.call("LRANGE", q.keys.prefix .. "trash:" .. name, 0, -1)) do
      is_freed[job] = true
    end
  end
  for _, job in ipairs(jobs) do
    if not c.is_delayed[job] and not c.claim_of[job] and not is_freed[job] then
      local level, lane, _, name = places.parse(job)
      local front = q.keys.prefix .. "front:" .. level .. ":" .. lane .. ":" .. name
      if not redis.call("LPOS", front, job) then
        auditing.differs(q, "aside.place", job, "a place", "none", function()
          redis.call("ZADD", q.keys.delayed, string.format("%d", q.now), job)
        end)
        count(c.delayed, name)
        c.all_delayed = c.all_delayed + 1
      end
    end
  end
end

-- A dead letter has a record and an instant.
function census.dead(q, jobs, kept)
  for _, job in ipairs(jobs) do
    if redis.call("HEXISTS", q.keys.dead_jobs, job) == 0 then
      auditing.differs(q, "dead.record", job, "a record", "none", function()
        redis.call("ZREM", q.keys.dead, job)
      end)
    end
  end
  for _, job in ipairs(kept) do
    if not redis.call("ZSCORE", q.keys.dead, job) then
      auditing.differs(q, "dead.instant", job, "an instant", "none", function()
        redis.call("ZADD", q.keys.dead, string.format("%d", q.now), job)
      end)
    end
  end
end

return census
