-- What is delayed and what runs, for the audit of tenants: whose counts say that there is something may have nothing
-- left. Read once in a script, when the first one asks.
local places = require "places"
local auditing = require "auditing"

local elsewhere = {}

local MOST = { claims = 500, running = 1500, delayed = 1500 } -- can be looked at within a few milliseconds

-- Tenants, lanes ("<lane>:<tenant>") and jobs that were met.
local function meet(found, jobs)
  for _, job in ipairs(jobs) do
    local _, lane, _, name = places.parse(job)
    found[job] = true
    -- One that is damaged is nobody's.
    if name then
      found[name], found[lane .. ":" .. name] = true, true
    end
  end
end

local function read_delayed(q)
  if redis.call("ZCARD", q.keys.delayed) > MOST.delayed then
    auditing.skip(q, "delayed")
    return nil
  end
  local found = {}
  meet(found, redis.call("ZRANGE", q.keys.delayed, 0, -1))
  return found
end

-- A claim that has lost its lease is not met. Then more runs by the counts than is met: what is missing is not gone.
local function read_running(q)
  if redis.call("ZCARD", q.keys.leases) > MOST.claims then
    auditing.skip(q, "claims")
    return nil
  elseif q.running > MOST.running then
    auditing.skip(q, "running")
    return nil
  end
  local found, is_seen, count = {}, {}, 0
  for _, member in ipairs(redis.call("ZRANGE", q.keys.leases, 0, -1)) do
    local fence = string.match(member, "^%d+")
    if not is_seen[fence] and count <= MOST.running then
      local jobs = redis.call("HKEYS", q.keys.prefix .. "claim:" .. fence)
      is_seen[fence], count = true, count + #jobs
      meet(found, jobs)
    end
  end
  return count == q.running and found or nil
end

local READ = { delayed = read_delayed, running = read_running }

-- Whether none of the tenant, none of the lane or not this job is delayed or runs (`where`). False as well when nobody
-- can say.
function elsewhere.has_none(q, where, what)
  q.elsewhere = q.elsewhere or {}
  if q.elsewhere[where] == nil then
    q.elsewhere[where] = READ[where](q) or false
  end
  local found = q.elsewhere[where]
  return found and not found[what]
end

return elsewhere
