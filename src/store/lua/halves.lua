-- What stands in no lane has two halves: a lease and its claim, an instant or a place in a front list and a record, a
-- dead letter's instant and its record. For the audit: whether each has the other, and what to do about it.
local places = require "places"
local auditing = require "auditing"
local queue = require "queue"

local halves = {}

local FRONT_LOOKED_AT = 1000 -- of one front list, for the jobs whose records are aside
local FRONTS_LOOKED_AT = 4000 -- of all of them, in one script
local MOST_DUTIES = 1000 -- looked through for what is being freed
local MOST_CLAIMS = 500 -- looked through for a job that seems to be nowhere

-- A lease without jobs holds nothing.
function halves.leases(q, members)
  for _, member in ipairs(members) do
    if redis.call("EXISTS", q.keys.prefix .. "claim:" .. string.match(member, "^%d+")) == 0 then
      auditing.differs(q, "lease.empty", member, "jobs", "none", function()
        redis.call("ZREM", q.keys.leases, member)
      end)
    end
  end
end

function halves.delayed(q, jobs)
  for _, job in ipairs(jobs) do
    if redis.call("HEXISTS", q.keys.aside, job) == 0 then
      auditing.differs(q, "delayed.record", job, "a record", "none", function()
        redis.call("ZREM", q.keys.delayed, job)
        -- It has ended somehow; nobody can say more.
        queue.count(q, "canceled", 1)
      end)
    end
  end
end

-- Whether records may belong to lists that were dropped with their actions, and are being freed.
local function is_freeing(q)
  if redis.call("ZCARD", q.keys.duties) > MOST_DUTIES then
    return true
  end
  for _, duty in ipairs(redis.call("ZRANGE", q.keys.duties, 0, -1)) do
    if string.match(duty, "^free:") then
      return true
    end
  end
  return false
end

local function is_claimed(q, job)
  if redis.call("ZCARD", q.keys.leases) > MOST_CLAIMS then
    return true
  end
  for _, member in ipairs(redis.call("ZRANGE", q.keys.leases, 0, -1)) do
    if redis.call("HEXISTS", q.keys.prefix .. "claim:" .. string.match(member, "^%d+"), job) == 1 then
      return true
    end
  end
  return false
end

-- Front lists are read once each. What is not met in the part that was looked at may be further on.
local function may_be_in_front(q, fronts, level, lane, name, job)
  local key = q.keys.prefix .. "front:" .. level .. ":" .. lane .. ":" .. name
  local front = fronts.by_key[key]
  if not front then
    front = { has = {}, is_partial = true }
    fronts.by_key[key] = front
    if fronts.looked_at < FRONTS_LOOKED_AT then
      local jobs = redis.call("LRANGE", key, 0, FRONT_LOOKED_AT - 1)
      fronts.looked_at = fronts.looked_at + #jobs
      front.is_partial = #jobs == FRONT_LOOKED_AT
      for _, each in ipairs(jobs) do
        front.has[each] = true
      end
    end
  end
  return front.has[job] or front.is_partial
end

-- A record aside belongs to a job that is delayed, came back to the front of its lane, or is being freed. One that
-- belongs to none is a job in no place: it is due now.
function halves.aside(q, jobs)
  local fronts, frees = { by_key = {}, looked_at = 0 }, nil
  for _, job in ipairs(jobs) do
    local level, lane, _, name = places.parse(job)
    if not redis.call("ZSCORE", q.keys.delayed, job) and not may_be_in_front(q, fronts, level, lane, name, job) then
      if frees == nil then
        frees = is_freeing(q)
      end
      local may_be_freed = frees and places.action_of(lane) ~= nil
      if not may_be_freed and not is_claimed(q, job) then
        auditing.differs(q, "aside.place", job, "a place", "none", function()
          redis.call("ZADD", q.keys.delayed, string.format("%d", q.now), job)
        end)
      end
    end
  end
end

-- A dead letter has a record and an instant.
function halves.dead(q, jobs)
  for _, job in ipairs(jobs) do
    if redis.call("HEXISTS", q.keys.dead_jobs, job) == 0 then
      auditing.differs(q, "dead.record", job, "a record", "none", function()
        redis.call("ZREM", q.keys.dead, job)
      end)
    end
  end
end

function halves.letters(q, jobs)
  for _, job in ipairs(jobs) do
    if not redis.call("ZSCORE", q.keys.dead, job) then
      auditing.differs(q, "dead.instant", job, "an instant", "none", function()
        redis.call("ZADD", q.keys.dead, string.format("%d", q.now), job)
      end)
    end
  end
end

return halves
