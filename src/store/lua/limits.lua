-- Which limits a job stands under, what they can grant now, and charging all of them or none.
-- Buckets of the queue and of levels live in one hash; a tenant's live in the tenant's hash.
local bucket = require "bucket"
local time = require "time"
local tenants = require "tenants"

local limits = {}

local max, min = math.max, math.min
local SECOND = 1000000
-- How stale grants are judged: over this long, against these shares (see roll).
local JUDGED_OVER = 10 * SECOND
local TOO_STALE, CALM = 0.02, 0.005
local CALM_FOR = 60 * SECOND
local LARGEST_JITTER = SECOND
local LEVELS = { "high", "normal", "low" }

local function jitter_field(scope, name)
  return scope .. "/" .. name .. "/jitter"
end

-- What a limit knows of the way to its upstream: "jitter:since:granted:stale:calm since".
local function open_jitter(rule, stored, now)
  local state = { rule = rule, jitter = rule.jitter, since = now, granted = 0, stale = 0, calm_since = now }
  if stored then
    local jitter, since, granted, stale, calm = string.match(stored, "^(%d+):(%d+):(%d+):(%d+):(%d+)$")
    state.jitter = max(rule.jitter, tonumber(jitter))
    state.since, state.granted, state.stale = tonumber(since), tonumber(granted), tonumber(stale)
    state.calm_since = tonumber(calm)
  end
  return state
end

local function jitter_of(q, scope, rule)
  local field = jitter_field(scope, rule.name)
  local state = q.limits.jitters[field]
  if not state then
    state = open_jitter(rule, redis.call("HGET", q.keys.limits, field), q.now)
    q.limits.jitters[field] = state
  end
  return state
end

-- Reads every limit of the queue and its levels, and the jitter of the tenants' limits, in one call.
function limits.open(q)
  local rules = q.settings.limits
  local opened = { jitters = {}, queue = {}, high = {}, normal = {}, low = {}, tenant = rules.tenant or {} }
  q.limits = opened
  local fields, targets = {}, {}
  local function want(scope, rule)
    if rule.kind ~= "bucket" then
      return
    end
    fields[#fields + 1] = jitter_field(scope, rule.name)
    targets[#targets + 1] = { scope = scope, rule = rule }
    if scope ~= "tenant" then
      fields[#fields + 1] = scope .. "/" .. rule.name
      targets[#targets + 1] = { scope = scope, rule = rule, is_state = true }
    end
  end
  for _, scope in ipairs({ "queue", "high", "normal", "low" }) do
    for _, rule in ipairs(rules[scope] or {}) do
      if rule.kind == "concurrency" then
        local field = scope == "queue" and "running" or "running:" .. scope
        local states = opened[scope]
        states[#states + 1] = { rule = rule, holder = q, field = field }
      else
        want(scope, rule)
      end
    end
  end
  -- A tenant can wait for a slot only under a concurrency limit: of the template, or of its own.
  opened.may_hold = q.has_own_slots
  for _, rule in ipairs(opened.tenant) do
    opened.may_hold = opened.may_hold or rule.kind == "concurrency"
    want("tenant", rule)
  end
  if #fields == 0 then
    return
  end
  local values = redis.call("HMGET", q.keys.limits, unpack(fields))
  for i, target in ipairs(targets) do
    local rule, scope = target.rule, target.scope
    if target.is_state then
      local known = jitter_of(q, scope, rule)
      local state = bucket.open(rule, values[i], known.jitter, q, q.now)
      state.field, state.known = fields[i], known
      local states = opened[scope]
      states[#states + 1] = state
    else
      local known = open_jitter(rule, values[i], q.now)
      opened.jitters[fields[i]] = known
      -- The rules of the template are this script's own copy: each tenant finds it here.
      rule.known = known
    end
  end
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

local NONE = {}

function limits.of_tenant(q, tenant)
  if tenant.limits then
    return tenant.limits
  end
  if #q.limits.tenant == 0 and not tenant.fields.limits then
    tenant.limits = NONE
    return NONE
  end
  local states = {}
  local rules = limits.tenant_rules(q, tenant)
  for i = 1, #rules do
    local rule = rules[i]
    if rule.kind == "concurrency" then
      tenants.running(q, tenant)
      states[i] = { rule = rule, holder = tenant, field = "running" }
    else
      -- The rules of the template are this script's own copy: each tenant finds here what does not differ.
      rule.field = rule.field or "bucket:" .. rule.name
      local known = rule.known or jitter_of(q, "tenant", rule)
      local state = bucket.open(rule, tenant.fields[rule.field], known.jitter, q, q.now)
      state.known, state.field = known, rule.field
      states[i] = state
    end
  end
  tenant.limits = states
  return states
end

local function available(state)
  if state.holder then
    return max(0, state.rule.max - state.holder[state.field])
  end
  return bucket.available(state)
end

-- When every bucket among them has a permit, and the one that has it last: 0 if now. A job that runs already has its
-- slots.
function limits.bucket_instant(states, now)
  local latest, last = 0, nil
  for i = 1, #states do
    local state = states[i]
    if not state.holder and bucket.available(state) == 0 then
      local instant = max(bucket.instant(state, 1), now + 1)
      if instant > latest then
        latest, last = instant, state
      end
    end
  end
  return latest, last
end

-- The least that all of them can grant; when that is nothing, the latest instant named and the limit that names it.
function limits.available(states)
  local least, until_us, last = math.huge, 0, nil
  for i = 1, #states do
    local state = states[i]
    local permits = available(state)
    if permits < least then
      least = permits
    end
    if permits == 0 then
      local instant = state.holder and time.NEVER or bucket.instant(state, 1)
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
  return scope .. "/" .. (rule.counted_as or rule.name)
end

local function count_grants(q, scope, rule, permits)
  -- The rules of the template are this script's own copy: each tenant finds it here.
  local field = rule.granted_field
  if not field then
    field = "granted:" .. counted(scope, rule)
    rule.granted_field = field
  end
  q.counts[field] = (q.counts[field] or 0) + permits
end

-- Why a limit has nothing to grant.
local function reason_of(state)
  if state.holder then
    return "concurrency"
  end
  return state.closed_until > state.now and "restart" or "rate"
end

local function denied_field(scope, state)
  return "denied:" .. counted(scope, state.rule) .. "/" .. reason_of(state)
end

-- Somebody in line goes without for want of this limit's permit.
function limits.deny(q, scope, state)
  local field = denied_field(scope, state)
  q.counts[field] = (q.counts[field] or 0) + 1
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
    if state.holder then
      if available(state) == 0 then
        return time.NEVER
      end
    else
      local permits = max(1, min(wanted, math.floor(state.rule.burst / 2)))
      latest = max(latest, bucket.instant(state, permits))
    end
  end
  return latest
end

-- Judges the last ten seconds when they are over: too many stale grants double the jitter, a calm minute halves it.
local function roll(state, now)
  if now - state.since < JUDGED_OVER then
    return
  end
  local share = state.granted > 0 and state.stale / state.granted or 0
  if share > TOO_STALE then
    state.jitter = min(state.jitter * 2, LARGEST_JITTER, max(state.rule.window, state.rule.jitter))
    state.calm_since = now
  elseif share > CALM then
    state.calm_since = now
  elseif now - state.calm_since >= CALM_FOR and state.jitter > state.rule.jitter then
    state.jitter = max(state.rule.jitter, math.floor(state.jitter / 2))
    state.calm_since = now
  end
  state.since, state.granted, state.stale = now, 0, 0
end

-- The buckets a job stands under, wherever they are attached. Concurrency needs no charge: its slots are the leases.
local function each_bucket(q, tenant, level, visit)
  for _, states in ipairs({ q.limits.queue, q.limits[level], limits.of_tenant(q, tenant) }) do
    for i = 1, #states do
      if not states[i].holder then
        visit(q, states[i])
      end
    end
  end
end

local function charge_all(q, scope, states, permits, fence, narrowest, has_slots)
  local now = q.now
  for i = 1, #states do
    local state = states[i]
    if not (state.holder and has_slots) then
      count_grants(q, scope, state.rule, permits)
    end
    if not state.holder then
      bucket.charge(state, permits, fence)
      local known = state.known
      roll(known, now)
      known.granted, known.changed = known.granted + permits, true
      if not narrowest or state.jitter < narrowest then
        narrowest = state.jitter
      end
    end
  end
  return narrowest
end

-- Answers the narrowest jitter of all that were charged, nil without a bucket: how long the grant keeps. A job that
-- runs already has its slots.
function limits.charge(q, tenant, level, permits, fence, has_slots)
  local of_queue, of_level, narrowest = q.limits.queue, q.limits[level], nil
  if of_queue[1] or of_level[1] then
    narrowest = charge_all(q, "queue", of_queue, permits, fence, nil, has_slots)
    narrowest = charge_all(q, level, of_level, permits, fence, narrowest, has_slots)
  end
  local of_tenant = tenant.limits or limits.of_tenant(q, tenant)
  return charge_all(q, "tenant", of_tenant, permits, fence, narrowest, has_slots)
end

function limits.refund(q, tenant, level, fence, is_stale)
  each_bucket(q, tenant, level, function(_, state)
    bucket.refund(state, 1, fence)
    if is_stale then
      local known = state.known
      roll(known, q.now)
      known.stale, known.changed = known.stale + 1, true
    end
  end)
end

function limits.save(q)
  local changes = {}
  for _, scope in ipairs({ "queue", LEVELS[1], LEVELS[2], LEVELS[3] }) do
    for _, state in ipairs(q.limits[scope]) do
      if state.changed then
        changes[#changes + 1] = state.field
        changes[#changes + 1] = bucket.stored(state, q)
      end
    end
  end
  for field, state in pairs(q.limits.jitters) do
    if state.changed then
      changes[#changes + 1] = field
      changes[#changes + 1] = string.format(
        "%.0f:%.0f:%d:%d:%.0f", state.jitter, state.since, state.granted, state.stale, state.calm_since
      )
    end
  end
  if #changes > 0 then
    redis.call("HSET", q.keys.limits, unpack(changes))
  end
end

return limits
