-- Why something does not run now: what every gate on its way says at this moment. It only reads, a bounded number of
-- keys. Times are in ms, so that JSON holds them.
local queue = require "queue"
local tenants = require "tenants"
local places = require "places"
local record = require "record"
local time = require "time"
local limits = require "limits"
local readings = require "readings"
local actions = require "actions"

local explaining = {}

local HOLDERS = 200 -- leases looked through for the clients that hold them
local LOOKED_AT = 1000 -- places looked through for one job, or one lane
local CLAIMS, JOBS = 50, 2000 -- of those with a lease, looked through for the last job of a level
local BUSY_SHOWN = 5 -- jobs that ordered lanes wait for

-- nil for never, and for what waits for an event rather than for a moment.
local function ms(us)
  us = tonumber(us)
  if not us or us == 0 or us >= time.NEVER then
    return nil
  end
  return math.floor(us / 1000)
end

-- Pauses of the queue and its levels, and when the queue last gave a claim any job.
function explaining.queue(q)
  local levels = {}
  for _, level in ipairs(queue.LEVELS) do
    levels[level] = ms(q.at[level].paused or 0)
  end
  return {
    paused = ms(q.paused or 0), levels_paused = levels, last_claim = ms(q.fence), max_wait = q.settings.max_wait / 1000,
  }
end

-- Who could claim. A busy client is known by its leases, an idle one because it waits to be woken.
function explaining.workers(q)
  local holders, seen = 0, {}
  for _, member in ipairs(redis.call("ZREVRANGE", q.keys.leases, 0, HOLDERS - 1)) do
    local client = string.match(member, "^%d+:(.*)$")
    if not seen[client] then
      seen[client], holders = true, holders + 1
    end
  end
  local idle = redis.call("ZCOUNT", q.keys.idle, string.format("(%d", q.now), "+inf")
  return { idle = idle, busy = holders, running = q.running }
end

-- Whether a running job stood on the level: on its own, unless an override had put all lines of its tenant on another.
-- Only its claim tells that, beside a payload that may be large: looked at where the tenant has an override now.
local function stood_on(q, level, claim_key, job, overrides)
  local own, _, _, tenant = places.parse(job)
  if not own then
    return false
  end
  local override = overrides[tenant]
  if override == nil then
    override = redis.call("HGET", q.keys.prefix .. "tenant:" .. tenant, "override")
    overrides[tenant] = override
  end
  if not override then
    return own == level
  elseif own ~= level and override ~= level then
    return false
  end
  local _, told = record.of_claimed(redis.call("HGET", claim_key, job))
  return (told or own) == level
end

-- When the last job was claimed that ran on the level, of those that still run; nil: that is too long ago to say. A
-- lease that is renewed says nothing of when it began, but its fence does: the newest claims are looked at first.
local function claimed_on(q, level)
  if q.at[level].running == 0 then
    return nil
  end
  local fences, overrides, looked_at = {}, {}, 0
  for i, member in ipairs(redis.call("ZREVRANGE", q.keys.leases, 0, CLAIMS - 1)) do
    fences[i] = tonumber(string.match(member, "^%d+"))
  end
  table.sort(fences, function(a, b)
    return a > b
  end)
  for _, fence in ipairs(fences) do
    local claim_key = string.format("%sclaim:%d", q.keys.prefix, fence)
    for _, job in ipairs(redis.call("HKEYS", claim_key)) do
      if stood_on(q, level, claim_key, job, overrides) then
        return fence
      end
      looked_at = looked_at + 1
    end
    if looked_at > JOBS then
      return nil
    end
  end
  return nil
end

-- When a limit of this scope last granted a job, or parked its tenant for want of that. Of what other queues share
-- nobody knows.
local function last_grant(q, scope, state, tenant)
  if state.is_shared then
    return nil
  elseif scope == "queue" then
    return q.fence
  elseif scope ~= "tenant" then
    return claimed_on(q, scope)
  end
  local latest = 0
  for _, at in pairs(tenant.at) do
    latest = math.max(latest, at.since)
  end
  return latest > 0 and latest or nil
end

-- Since when a limit that does not grant a job of this cost has not: since its upstream closed it, or the store
-- restarted, or else since the last grant, because it can only fill up after that. nil: it grants, or nobody knows.
local function closed_since(q, scope, state, tenant, cost)
  if readings.grants(state, cost) then
    return nil
  end
  if state.pushed and state.pushed.closed_until > q.now then
    return state.pushed.cut_at
  elseif state.closed_until > q.now then
    return q.restarted_at
  elseif state.rule.kind == "bucket" then
    return state.meter.granted_last(state)
  elseif state.rule.kind == "window" then
    return state.last
  end
  return last_grant(q, scope, state, tenant)
end

-- By scope and name, of those that do not grant a job of this cost. The limits are open.
function explaining.closed_limits(q, tenant, cost)
  local found = {}
  local function add(scope, states)
    for _, state in ipairs(states) do
      if not state.rule.is_share then
        local since = closed_since(q, scope, state, tenant, cost)
        found[scope .. "/" .. state.rule.name] = since and ms(math.min(since, q.now))
      end
    end
  end
  add("queue", q.limits.queue)
  for _, level in ipairs(queue.LEVELS) do
    add(level, q.limits[level])
  end
  add("tenant", limits.of_tenant(q, tenant))
  return found
end

-- What the first job costs of the lane whose turn it is on a level.
local function next_cost(q, tenant, level)
  local token = tenant.at[level].lane
  if not q.has_costs or not token then
    return 1
  end
  local lane, prefix = level .. ":" .. token .. ":" .. tenant.name, q.keys.prefix
  local job = redis.call("LINDEX", prefix .. "front:" .. lane, "0")
  local text = job and redis.call("HGET", q.keys.aside, job) or redis.call("LINDEX", prefix .. "lane:" .. lane, "0")
  return text and record.cost(text) or 1
end

-- All lines of a tenant with an override stand on one level, its high ones first there.
local function line_of(tenant, level)
  if not tenant.fields.override then
    return level
  end
  for _, own in ipairs(queue.LEVELS) do
    if tenant.at[own].lanes > 0 then
      return own
    end
  end
end

local function is_open(q, level, cost)
  for _, state in ipairs(q.limits[level]) do
    if not readings.grants(state, cost) then
      return false
    end
  end
  return not q.at[level].paused
end

-- The level a tenant is asked about, and what its next job there costs: the first level where nothing but its turn and
-- the workers can say no, else the first. nil: it has nothing to do. The limits are open.
function explaining.next_of(q, tenant)
  local first, its_cost
  for _, level in ipairs(queue.LEVELS) do
    if tenants.has_work(tenant, level) then
      local cost = next_cost(q, tenant, line_of(tenant, level))
      if is_open(q, level, cost) then
        return level, cost
      end
      first, its_cost = first or level, its_cost or cost
    end
  end
  return first, its_cost or 1
end

-- Where the tenant stands on a level, or stood when it last was in line there.
local function stand(q, tenant, level)
  local at, ready = tenant.at[level], q.keys.ready[level]
  local able_since = math.max(at.since, q.resumed or 0, q.at[level].resumed or 0)
  return {
    level = level, lanes = at.lanes, lane = at.lane, score = ms(at.score), since = ms(at.since), in_line = at.present,
    rank = redis.call("ZRANK", ready, tenant.name) or nil, ready = redis.call("ZCARD", ready),
    overdue = at.present and q.settings.max_wait > 0 and q.now - able_since > q.settings.max_wait or false,
  }
end

local function stands(q, tenant)
  local found = {}
  for _, level in ipairs(queue.LEVELS) do
    if tenants.has_work(tenant, level) then
      found[#found + 1] = stand(q, tenant, level)
    end
  end
  return found
end

-- By which limit, until when, since when. Once a limit has changed it waits for a claim to put it back in line.
local function parking(q, tenant, standing)
  local limit = tenant.fields.parked
  if not limit then
    return nil
  end
  local since = 0
  for _, each in ipairs(standing) do
    since = math.max(since, each.since or 0)
  end
  local until_us = redis.call("ZSCORE", q.keys.parked, tenant.name)
  local is_lifted = not until_us and redis.call("ZSCORE", q.keys.unparking, tenant.name) ~= false
  return { limit = limit, until_ms = ms(until_us), since = since > 0 and since or nil, is_lifted = is_lifted }
end

-- Jobs that its ordered lanes wait for.
local function busy_with(q, tenant)
  local jobs = {}
  local found = redis.call("HSCAN", q.keys.prefix .. "lanes:" .. tenant.name, 0, "MATCH", "busy:*", "COUNT", LOOKED_AT)
  for i = 2, #found[2], 2 do
    if #jobs < BUSY_SHOWN then
      jobs[#jobs + 1] = found[2][i]
    end
  end
  return jobs
end

function explaining.tenant(q, tenant)
  local standing = stands(q, tenant)
  local facts = {
    waiting = tenant.waiting, delayed = tenant.delayed, running = tenants.running(q, tenant), weight = tenant.weight,
    base = tenant.base or 0, override = tenant.fields.override, paused = ms(tenant.fields.paused), stands = standing,
    parked = parking(q, tenant, standing),
  }
  if tenant.waiting > 0 and #standing == 0 then
    facts.busy = busy_with(q, tenant)
  end
  return facts
end

local function action_of(q, found)
  if not places.action_of(found.lane) then
    return nil
  end
  local action = actions.of_lane(q, found.tenant, found.lane, found.sequence)
  return { state = action.state, is_sealed = action.sealed == 1, ended = ms(action.ended) }
end

-- How many jobs of its lane go before a waiting one: those that came back, then the list. Of a long line of the former
-- only so many are looked through; a job further back has at least as many before it.
local function ahead_of(q, found)
  local lane = found.level .. ":" .. found.lane .. ":" .. found.tenant
  local front = q.keys.prefix .. "front:" .. lane
  if found.at then
    return redis.call("LLEN", front) + found.at
  end
  return redis.call("LPOS", front, found.job, "MAXLEN", LOOKED_AT) or LOOKED_AT
end

-- The lane of a waiting job: what goes before it, for which job it waits if it is ordered, and how many lanes of the
-- tenant have their turn before it.
local function lane_of(q, found, tenant)
  local at, id = tenant.at[found.level], found.level .. ":" .. found.lane
  local facts = { ahead = ahead_of(q, found), lanes = at.lanes, lanes_before = 0 }
  if places.is_ordered(found.lane) then
    facts.busy = redis.call("HGET", q.keys.prefix .. "lanes:" .. tenant.name, "busy:" .. id) or nil
  end
  if at.lane ~= found.lane and at.lanes > 0 and not facts.busy then
    local ring = q.keys.prefix .. "ring:" .. found.level .. ":" .. tenant.name
    facts.lanes_before = 1 + (redis.call("LPOS", ring, found.lane, "MAXLEN", LOOKED_AT) or LOOKED_AT)
  end
  return facts
end

-- `found` is what finding.lua found.
function explaining.job(q, found, tenant)
  local facts = {
    key = found.job, level = found.level, state = found.state, due = ms(found.due), died_of = found.reason,
    client = found.client, fence = found.fence, action = action_of(q, found),
  }
  if found.text then
    local attempts, stalls, throttles, since, reason = record.history(found.text)
    facts.attempts, facts.stalls, facts.throttles = attempts, stalls, throttles
    facts.since = since > 0 and since or nil
    facts.reason = reason ~= "" and reason or nil
    facts.created = string.match(found.text, "^[^\n]*\n([^\n]*)\n")
  end
  if found.state == "waiting" then
    facts.lane = lane_of(q, found, tenant)
  elseif found.state == "running" then
    local lease = redis.call("ZSCORE", q.keys.leases, found.fence .. ":" .. found.client)
    facts.claimed, facts.lease = ms(found.fence), ms(lease)
    facts.is_canceling = redis.call("ZSCORE", q.keys.canceled, found.job) ~= false
  end
  return facts
end

return explaining
