-- Which limits a job stands under, what they can grant now, and charging all of them or none. What a limit counts is
-- its meter's (meters.lua). The state of the queue's and of its levels' limits lives in one hash, that of a tenant's in
-- the tenant's hash.
local jitter = require "jitter"
local meters = require "meters"
local shares = require "shares"
local group = require "group"
local tenants = require "tenants"
local record = require "record"

local limits = {}

local max, min, huge = math.max, math.min, math.huge
local SCOPES = { "queue", "high", "normal", "low" }
local NONE = {}

local function open_jitter(q, rule, field, stored)
  local known = jitter.open(rule, stored, q.now)
  q.limits.jitters[field] = known
  return known
end

local function jitter_of(q, rule)
  local field = "tenant/" .. rule.name .. "/jitter"
  return q.limits.jitters[field] or open_jitter(q, rule, field, redis.call("HGET", q.keys.limits, field))
end

-- What is stored of a limit of the queue or a level stands in three fields, behind the place `rule.at`: what its
-- upstream taught it, what it counted, and what it knows of the way there (of a quota: what callers without a job have
-- reserved). One that counts slots has the first alone. The rules are this script's own copy.
local function list_fields(scope, rule, fields)
  local kind, at = rule.kind, #fields
  if kind == "shared" then
    return
  end
  local name = scope .. "/" .. rule.name
  rule.at, fields[at + 1] = at, name .. "/pushed"
  if kind ~= "concurrency" then
    local field = meters.field(name, kind)
    fields[at + 2], fields[at + 3] = field, kind == "quota" and field .. "/reserved" or name .. "/jitter"
  end
end

local function open_rule(q, scope, rule, fields, values)
  local kind, at = rule.kind, rule.at
  if kind == "shared" then
    return q.group.by_limit[rule.limit]
  end
  local pushed_field, pushed = fields[at + 1], values[at + 1]
  local holder = scope == "queue" and q or q.at[scope]
  if kind == "concurrency" then
    return meters.hold(q, rule, holder, "running", pushed_field, pushed)
  end
  local known = kind ~= "quota" and open_jitter(q, rule, fields[at + 3], values[at + 3]) or nil
  local state = meters.open(q, rule, fields[at + 2], values[at + 2], known, pushed_field, pushed)
  if kind == "quota" then
    meters.land(state, holder.running == 0, values[at + 3])
  end
  return state
end

-- Reads every limit of the queue and its levels, and the jitter of the tenants' limits, in one call; those that it
-- shares with other queues in another. False when the store has lost one of these: the queue must be registered again.
-- `takes_back` as in group.open.
function limits.open(q, takes_back)
  local rules = q.settings.limits
  local of_tenants = rules.tenant or NONE
  local opened = {
    jitters = {}, queue = NONE, high = NONE, normal = NONE, low = NONE, tenant = of_tenants,
    may_hold = q.has_own_slots, has_quota = q.has_own_quota, active = nil,
  }
  q.limits = opened
  if q.settings.strict == 1 and #(rules.queue or NONE) > 0 then
    opened.active = shares.active(q)
  end
  if q.settings.shared then
    if not group.open(q, takes_back) then
      return false
    end
    opened.has_quota = opened.has_quota or q.group.has_quota
  end
  local fields = { q.restarts > 0 and "@lost" or nil }
  for i = 1, #SCOPES do
    local scope = SCOPES[i]
    local of_scope = rules[scope] or NONE
    for j = 1, #of_scope do
      opened.has_quota = opened.has_quota or of_scope[j].kind == "quota"
      list_fields(scope, of_scope[j], fields)
    end
  end
  for i = 1, #of_tenants do
    local rule = of_tenants[i]
    opened.may_hold = opened.may_hold or meters.may_hold(rule)
    opened.has_quota = opened.has_quota or rule.kind == "quota"
    if meters.has_jitter(rule) then
      rule.at = #fields
      fields[rule.at + 1] = "tenant/" .. rule.name .. "/jitter"
    end
  end
  local values = fields[1] and redis.call("HMGET", q.keys.limits, unpack(fields)) or NONE
  if q.restarts > 0 then
    q.lost_at = tonumber(values[1] or "")
  end
  for i = 1, #SCOPES do
    local scope = SCOPES[i]
    local of_scope = rules[scope]
    if of_scope then
      local states = {}
      for j = 1, #of_scope do
        states[j] = open_rule(q, scope, of_scope[j], fields, values)
      end
      opened[scope] = states
    end
  end
  for i = 1, #of_tenants do
    local rule = of_tenants[i]
    if rule.at then
      -- Each tenant finds it here.
      rule.known = open_jitter(q, rule, fields[rule.at + 1], values[rule.at + 1])
    end
  end
  return true
end

-- The rules of one tenant: the template, with its own in place of those of the same name and after the others.
function limits.tenant_rules(q, tenant)
  local own = tenant.fields.limits
  if not own then
    return q.settings.limits.tenant or {}
  end
  own = cmsgpack.unpack(own)
  local rules, replaced = {}, {}
  for _, rule in ipairs(q.settings.limits.tenant or {}) do
    local chosen = rule
    for _, mine in ipairs(own) do
      if mine.name == rule.name then
        chosen = mine
        replaced[mine.name] = true
      end
    end
    if chosen.kind ~= "none" then
      rules[#rules + 1] = chosen
    end
  end
  for _, mine in ipairs(own) do
    if not replaced[mine.name] and mine.kind ~= "none" then
      mine.counted_as = "other"
      rules[#rules + 1] = mine
    end
  end
  return rules
end

local function open_of_tenant(q, tenant, rule)
  local kind, field, fields = rule.kind, rule.field, tenant.fields
  -- The rules of the template are this script's own copy: each tenant finds here what does not differ.
  if not field then
    field = kind .. ":" .. rule.name
    rule.field, rule.pushed_field = field, "pushed:" .. rule.name
  end
  local pushed_field = rule.pushed_field
  local pushed = fields[pushed_field]
  if kind == "concurrency" then
    tenants.running(q, tenant)
    return meters.hold(q, rule, tenant, "running", pushed_field, pushed)
  end
  local known = rule.known or (meters.has_jitter(rule) and jitter_of(q, rule) or nil)
  local state = meters.open(q, rule, field, fields[field], known, pushed_field, pushed)
  if kind == "quota" and state.meter.usage(state) > 0 and tenants.ran(q, tenant) == 0 then
    state.meter.lands(state)
  end
  return state
end

function limits.of_tenant(q, tenant)
  if tenant.limits then
    return tenant.limits
  end
  local opened = q.limits
  local rules, is_strict = opened.tenant, opened.active ~= nil
  if tenant.fields.limits then
    rules = limits.tenant_rules(q, tenant)
  elseif not rules[1] and not is_strict then
    tenant.limits = NONE
    return NONE
  end
  local states = {}
  for i = 1, #rules do
    states[i] = open_of_tenant(q, tenant, rules[i])
  end
  if is_strict then
    shares.open(q, tenant, states)
  end
  tenant.limits = states
  return states
end

-- When every meter among them can grant a further call of a job that runs, and the one that can last: 0 if now. The job
-- has its slots already; `members` are those of pools that granted it, by limit.
function limits.further_instant(states, scope, permits, now, members)
  local latest, last = 0, nil
  for i = 1, #states do
    local state = states[i]
    if not state.holder then
      local meter = state.meter
      local member = record.member(members, scope, state.rule.name)
      local instant = (meter.further_instant or meter.instant)(state, permits, member)
      if instant > now and instant > latest then
        latest, last = instant, state
      end
    end
  end
  return latest, last
end

-- The least that all of them can grant; when that is nothing, the latest instant named and the limit that names it.
function limits.available(states)
  local least, until_us, last = huge, 0, nil
  for i = 1, #states do
    local state = states[i]
    local meter = state.meter
    local permits = meter.available(state)
    if permits < least then
      least = permits
    end
    if permits == 0 then
      local instant = meter.instant(state, 1)
      if instant > until_us then
        until_us, last = instant, state
      end
    end
  end
  return least, until_us, last
end

-- What a limit granted and denied is counted in the queue's hash. All tenants' limits of one name count as one, and
-- names that only tenants' own limits have as "other": there are as many fields as the queue has limits.
local function counted(scope, rule)
  return (rule.is_share and "queue" or scope) .. "/" .. (rule.counted_as or rule.name)
end

-- The rules of the template are this script's own copy: each tenant finds it there. That of a limit which queues share
-- can stand on two levels, and is named anew.
local function name_granted(scope, state)
  local field = "granted:" .. counted(scope, state.rule)
  if not state.is_shared then
    state.rule.granted_field = field
  end
  return field
end

function limits.count_grants(q, scope, state, permits)
  -- Of a share the limit counts them that it is a part of.
  if not state.rule.is_share then
    local field, counts = state.rule.granted_field or name_granted(scope, state), q.counts
    counts[field] = (counts[field] or 0) + permits
  end
end

local REASONS = { bucket = "rate", window = "window", quota = "quota", concurrency = "concurrency" }

-- Why a limit has nothing to grant.
local function reason_of(state)
  if state.closed_until > state.now then
    return state.pushed and state.pushed.closed_until > state.now and "upstream" or "restart"
  elseif state.rule.is_share then
    return "share"
  end
  return REASONS[state.rule.kind]
end

-- Many tenants under one rule are denied for the same reason.
local function denied_field(scope, state)
  local rule, reason = state.rule, reason_of(state)
  if rule.denied_for ~= reason or state.is_shared then
    rule.denied_for, rule.denied_field = reason, "denied:" .. counted(scope, rule) .. "/" .. reason
  end
  return rule.denied_field
end

-- Somebody in line, or so many, goes without for want of this limit's permit.
function limits.deny(q, scope, state, callers)
  local field, counts = denied_field(scope, state), q.counts
  counts[field] = (counts[field] or 0) + (callers or 1)
end

-- The same of a limit that closes the queue or a level: once in a claim, however often it is asked.
function limits.deny_all(q, scope, state)
  q.counts[denied_field(scope, state)] = 1
end

-- When a batch worth asking for can be granted. A claim for every single permit of a fast bucket would cost a request
-- each; half its burst is given for free by waiting half as long as the bucket can save up.
function limits.batch_instant(states, wanted)
  local latest = 0
  for i = 1, #states do
    local state = states[i]
    latest = max(latest, state.meter.instant(state, max(1, min(wanted, state.meter.batch(state)))))
  end
  return latest
end

-- Each job by the member with most left.
local function charge_pool(q, state, scope, level, from)
  local jobs = q.claim.jobs
  for i = from + 2, #jobs, 2 do
    local member = state.meter.charge(state, record.cost(record.of_claimed(jobs[i])))
    jobs[i] = record.granted_by(jobs[i], level, scope, state.rule.name, member)
  end
end

-- Notes with what the limit knows of the way that it has granted so much. Answers for how long that, or what else is in
-- hand, keeps.
local function keep(q, state, permits, shortest)
  local known = state.known
  if known then
    jitter.granted(known, permits, q.now)
  end
  -- A strict share leaves it to its limit to learn of the way, but can grant late where that does not.
  if known or state.rule.is_share then
    local keeps = jitter.keeps(state)
    if not shortest or keeps < shortest then
      return keeps
    end
  end
  return shortest
end

-- Every turn comes this way: what most limits need is done here, without a call for each part of it.
local function charge_all(q, scope, states, permits, fence, shortest, level, from)
  local counts = q.counts
  for i = 1, #states do
    local state = states[i]
    local rule = state.rule
    if rule.is_share then
      state.meter.charge(state, permits, fence)
      shortest = keep(q, state, permits, shortest)
    else
      local field = rule.granted_field or name_granted(scope, state)
      counts[field] = (counts[field] or 0) + permits
      if rule.members then
        charge_pool(q, state, scope, level, from)
      elseif not state.holder then
        state.meter.charge(state, permits, fence)
      end
      local known = state.known
      if known then
        if not known.changed then
          jitter.begin(known, q.now)
        end
        known.granted = known.granted + permits
        local keeps = rule.keeps_with == state.jitter and rule.keeps or jitter.keeps_for(state)
        keeps = keeps - (state.late or 0)
        if not shortest or keeps < shortest then
          shortest = keeps
        end
      end
    end
  end
  return shortest
end

-- For the jobs of the claim behind the place `from`, of a tenant whose limits were asked before. Answers for how long
-- the grant keeps, nil: for ever.
function limits.charge(q, tenant, level, permits, fence, from)
  local of_queue, of_level, of_tenant, shortest = q.limits.queue, q.limits[level], tenant.limits, nil
  if of_queue[1] then
    shortest = charge_all(q, "queue", of_queue, permits, fence, nil, level, from)
  end
  if of_level[1] then
    shortest = charge_all(q, level, of_level, permits, fence, shortest, level, from)
  end
  if of_tenant[1] then
    shortest = charge_all(q, "tenant", of_tenant, permits, fence, shortest, level, from)
  end
  return shortest
end

local function charge_further(q, scope, states, permits, fence, members, shortest)
  for i = 1, #states do
    local state = states[i]
    if not state.holder then
      local meter = state.meter
      limits.count_grants(q, scope, state, permits)
      if meter.charge_again then
        meter.charge_again(state, permits, record.member(members, scope, state.rule.name))
      else
        meter.charge(state, permits, fence)
      end
    end
    shortest = keep(q, state, permits, shortest)
  end
  return shortest
end

-- A further call of a job that runs. It has its slots, and is in flight already. Answers as `charge` does.
function limits.charge_again(q, tenant, level, permits, fence, members)
  local shortest = charge_further(q, "queue", q.limits.queue, permits, fence, members, nil)
  shortest = charge_further(q, level, q.limits[level], permits, fence, members, shortest)
  return charge_further(q, "tenant", limits.of_tenant(q, tenant), permits, fence, members, shortest)
end

-- Jobs that run no longer are no longer in flight where an upstream counts. `members` as in refund, nil without.
function limits.release(q, name, level, permits, members)
  local function of(states, scope)
    for _, state in ipairs(states) do
      if state.rule.kind == "quota" then
        state.meter.release(state, permits, members and record.member(members, scope, state.rule.name))
      end
    end
  end
  of(q.limits.queue, "queue")
  of(q.limits[level], level)
  of(limits.of_tenant(q, tenants.load(q, name)), "tenant")
end

-- Permits of a job that was never started. `members` are those of pools that granted it, by limit.
function limits.refund(q, tenant, level, permits, fence, is_stale, members)
  for _, scope in ipairs({ "queue", level, "tenant" }) do
    for _, state in ipairs(scope == "tenant" and limits.of_tenant(q, tenant) or q.limits[scope]) do
      state.meter.refund(state, permits, fence, record.member(members, scope, state.rule.name))
      if is_stale and state.known then
        jitter.stale(state.known, q.now, permits)
      end
    end
  end
end

function limits.save(q)
  local changes, count = {}, 0
  for i = 1, #SCOPES do
    local states = q.limits[SCOPES[i]]
    for j = 1, #states do
      if not states[j].is_shared then
        count = meters.collect(q, states[j], changes, count)
      end
    end
  end
  for field, state in pairs(q.limits.jitters) do
    if state.changed then
      changes[count + 1], changes[count + 2] = field, jitter.stored(state)
      count = count + 2
    end
  end
  if count > 0 then
    redis.call("HSET", q.keys.limits, unpack(changes, 1, count))
  end
  if q.group then
    group.save(q)
  end
end

return limits
