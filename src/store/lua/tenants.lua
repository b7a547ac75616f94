-- Tenants, and where they stand: in line on a level (ready), parked until an instant, paused, or with nothing to do.
-- A tenant's hash is read once, changed in memory and written once, when the script has read all it needs.
local queue = require "queue"
local time = require "time"
local bucket = require "bucket"

local tenants = {}

-- Field names by level, made once.
local LANES = { high = "lanes:high", normal = "lanes:normal", low = "lanes:low" }
local USED = { high = "used:high", normal = "used:normal", low = "used:low" }

local LEVELS = queue.LEVELS
local COUNTS = { "waiting", "delayed", "running", "total", "done", "front", "marks" }

-- A nil value removes the field.
function tenants.set(tenant, field, value)
  tenant.fields[field] = value
  if value == nil then
    value = false
  end
  tenant.changes[field] = value
end

function tenants.lanes_at(tenant, level)
  return tonumber(tenant.fields[LANES[level]]) or 0
end

-- Where the lines of a level stand: there, or where the tenant's override puts them all.
function tenants.standing(tenant, level)
  return tenant.fields.level or level
end

function tenants.has_work(tenant, standing)
  if not tenant.fields.level then
    return tenants.lanes_at(tenant, standing) > 0
  end
  if tenant.fields.level ~= standing then
    return false
  end
  for i = 1, 3 do
    if tenants.lanes_at(tenant, LEVELS[i]) > 0 then
      return true
    end
  end
  return false
end

local function is_free(tenant)
  return not tenant.fields.paused and not tenant.fields.parked
end

-- Where the tenant stood before this script: it must be known before anything of it changes.
local function open_stands(tenant)
  local free = is_free(tenant)
  for i = 1, 3 do
    local standing = LEVELS[i]
    local present = free and tenants.has_work(tenant, standing)
    tenant.stands[standing] =
      { present = present, was_present = present, used = tonumber(tenant.fields[USED[standing]]) or 0 }
  end
end

function tenants.stand(tenant, standing)
  return tenant.stands[standing]
end

function tenants.load(q, name)
  local loaded = q.tenants
  if not loaded then
    loaded = { list = {} }
    q.tenants = loaded
  end
  local tenant = loaded[name]
  if tenant then
    return tenant
  end
  local key = q.keys.prefix .. "tenant:" .. name
  local flat = redis.call("HGETALL", key)
  local fields = {}
  for i = 1, #flat, 2 do
    fields[flat[i]] = flat[i + 1]
  end
  tenant = { name = name, key = key, fields = fields, changes = {}, stands = {}, lines = {}, opened = {} }
  for i = 1, #COUNTS do
    tenant[COUNTS[i]] = tonumber(fields[COUNTS[i]]) or 0
  end
  tenant.weight = tonumber(fields.weight) or 1
  tenant.base = tonumber(fields.base) or 0
  tenant.was_idle = fields.idle ~= nil
  open_stands(tenant)
  loaded[name] = tenant
  loaded.list[#loaded.list + 1] = tenant
  return tenant
end

-- In microseconds: the clock, the head start or handicap, and the progress term within its bounds.
function tenants.new_score(q, tenant)
  local settings = q.settings
  local progress = 0
  if settings.alpha ~= 0 then
    progress = settings.alpha * 1000 * tenant.done / math.max(1, tenant.total - tenant.done)
    progress = math.max(-settings.max_progress, math.min(settings.max_progress, progress))
  end
  return queue.tick(q) + tenant.base * 1000 + math.floor(progress)
end

function tenants.set_score(stand, score)
  stand.score = score
  stand.score_changed = true
end

local function enter(q, tenant, standing)
  local stand = tenants.stand(tenant, standing)
  if stand.present then
    return
  end
  stand.present = true
  local kept = tenant.fields["score:" .. standing]
  tenants.set_score(stand, kept and tonumber(kept) or tenants.new_score(q, tenant))
  if kept then
    tenants.set(tenant, "score:" .. standing, nil)
  end
  stand.since = q.now
  q["weights:" .. standing] = q["weights:" .. standing] + tenant.weight
  tenants.set(tenant, "virtual:" .. standing, q["virtual:" .. standing])
end

local function leave(q, tenant, standing)
  local stand = tenants.stand(tenant, standing)
  if not stand.present then
    return
  end
  stand.present = false
  local weights, virtual = "weights:" .. standing, "virtual:" .. standing
  q[weights] = math.max(0, q[weights] - tenant.weight)
  local entitled = "entitled:" .. standing
  local since = tonumber(tenant.fields[virtual]) or q[virtual]
  tenants.set(tenant, entitled, (tonumber(tenant.fields[entitled]) or 0) + tenant.weight * (q[virtual] - since))
end

-- Puts the tenant where it belongs after its work, pause, override or parking changed: in line on each level where it
-- has work and may run, out of all others. One that has nothing left on a level forgets its turn and its score there.
function tenants.settle(q, tenant)
  local free = is_free(tenant)
  for i = 1, 3 do
    local standing = LEVELS[i]
    local has_work = tenants.has_work(tenant, standing)
    if free and has_work then
      enter(q, tenant, standing)
    else
      local stand = tenants.stand(tenant, standing)
      if stand.present and has_work then
        local score = stand.score or tonumber(redis.call("ZSCORE", q.keys.ready[standing], tenant.name))
        tenants.set(tenant, "score:" .. standing, string.format("%.0f", score))
      end
      leave(q, tenant, standing)
      if not has_work then
        stand.used = 0
        if tenant.fields["score:" .. standing] then
          tenants.set(tenant, "score:" .. standing, nil)
        end
      end
    end
  end
end

-- Out of line until the instant, whatever its level: a limit said no. It keeps its score.
function tenants.park(q, tenant, until_us, limit)
  tenants.set(tenant, "parked", limit)
  tenants.settle(q, tenant)
  tenant.parked_until = until_us
  queue.count(q, "parked", 1)
end

function tenants.unpark(q, tenant)
  if not tenant.fields.parked then
    return
  end
  tenants.set(tenant, "parked", nil)
  tenant.parked_until = nil
  tenant.was_parked = true
  tenants.settle(q, tenant)
end

-- Another weight, from now on: what was earned under the old one is booked.
function tenants.reweigh(q, tenant, weight)
  for i = 1, 3 do
    local standing = LEVELS[i]
    if tenants.stand(tenant, standing).present then
      local virtual, entitled = "virtual:" .. standing, "entitled:" .. standing
      local since = tonumber(tenant.fields[virtual]) or q[virtual]
      tenants.set(tenant, entitled, (tonumber(tenant.fields[entitled]) or 0) + tenant.weight * (q[virtual] - since))
      tenants.set(tenant, virtual, q[virtual])
      q["weights:" .. standing] = math.max(0, q["weights:" .. standing] + weight - tenant.weight)
    end
  end
  tenant.weight = weight
end

-- Another head start or handicap: the places it has in line move by the difference.
function tenants.rebase(q, tenant, base)
  local difference = (base - tenant.base) * 1000
  for i = 1, 3 do
    local standing = LEVELS[i]
    local stand, kept = tenants.stand(tenant, standing), tenant.fields["score:" .. standing]
    if stand.present then
      local score = stand.score or tonumber(redis.call("ZSCORE", q.keys.ready[standing], tenant.name))
      tenants.set_score(stand, score + difference)
    elseif kept then
      tenants.set(tenant, "score:" .. standing, string.format("%.0f", tonumber(kept) + difference))
    end
  end
  tenant.base = base
end

-- A slot of a concurrency limit is free again: a tenant that waited for no instant is back in line.
function tenants.freed(q, tenant)
  if tenant.fields.parked and tonumber(redis.call("ZSCORE", q.keys.parked, tenant.name)) == time.NEVER then
    tenants.unpark(q, tenant)
  end
end

function tenants.is_idle(tenant)
  return tenant.waiting == 0 and tenant.delayed == 0 and tenant.running == 0 and tenant.marks == 0
end

local function has_settings(tenant)
  local fields = tenant.fields
  return fields.weight or fields.base or fields.level or fields.paused or fields.limits
end

local function collect_stands(tenant, out)
  for standing, stand in pairs(tenant.stands) do
    local sets = out[standing]
    if stand.present then
      if not stand.was_present or stand.score_changed then
        local scores = sets.ready
        scores[#scores + 1] = stand.score
        scores[#scores + 1] = tenant.name
      end
      if stand.since then
        local since = sets.since
        since[#since + 1] = stand.since
        since[#since + 1] = tenant.name
        tenants.set(tenant, "since:" .. standing, string.format("%.0f", stand.since))
      end
    elseif stand.was_present then
      sets.gone[#sets.gone + 1] = tenant.name
    end
    local used = tonumber(tenant.fields[USED[standing]]) or 0
    if used ~= stand.used then
      tenants.set(tenant, USED[standing], stand.used ~= 0 and stand.used or nil)
    end
  end
end

local function write_fields(q, tenant)
  for i = 1, #COUNTS do
    local name = COUNTS[i]
    if tenant[name] ~= (tonumber(tenant.fields[name]) or 0) then
      tenants.set(tenant, name, tenant[name] ~= 0 and tenant[name] or nil)
    end
  end
  local keep = q.settings.keep_ids
  for _, state in ipairs(tenant.limits or {}) do
    if state.changed then
      tenants.set(tenant, "bucket:" .. state.rule.name, bucket.stored(state, q))
    end
    if not state.holder then
      keep = math.max(keep, state.tat - q.now)
    end
  end
  local is_idle = tenants.is_idle(tenant)
  if is_idle and (tenant.total > 0 or tenant.done > 0) then
    tenants.set(tenant, "total", nil)
    tenants.set(tenant, "done", nil)
  end
  local expires = is_idle and not has_settings(tenant)
  if expires and not tenant.was_idle then
    tenants.set(tenant, "idle", "1")
  elseif not expires and tenant.was_idle then
    tenants.set(tenant, "idle", nil)
  end
  local sets, deletes = {}, {}
  for field, value in pairs(tenant.changes) do
    if value == false then
      deletes[#deletes + 1] = field
    else
      sets[#sets + 1] = field
      sets[#sets + 1] = value
    end
  end
  if #sets > 0 then
    redis.call("HSET", tenant.key, unpack(sets))
  end
  if #deletes > 0 then
    redis.call("HDEL", tenant.key, unpack(deletes))
  end
  if expires and not tenant.was_idle then
    redis.call("PEXPIRE", tenant.key, math.ceil(keep / 1000))
  elseif not expires and tenant.was_idle then
    redis.call("PERSIST", tenant.key)
  end
end

-- Writes every loaded tenant and its places in line. Only from here on does a script write.
function tenants.save(q)
  if not q.tenants then
    return
  end
  local out = {}
  for i = 1, 3 do
    out[LEVELS[i]] = { ready = {}, since = {}, gone = {} }
  end
  local parked, unparked = {}, {}
  for _, tenant in ipairs(q.tenants.list) do
    collect_stands(tenant, out)
    if tenant.parked_until then
      parked[#parked + 1] = tenant.parked_until
      parked[#parked + 1] = tenant.name
    elseif tenant.was_parked then
      unparked[#unparked + 1] = tenant.name
    end
    write_fields(q, tenant)
  end
  for i = 1, 3 do
    local sets = out[LEVELS[i]]
    if #sets.ready > 0 then
      redis.call("ZADD", q.keys.ready[LEVELS[i]], unpack(sets.ready))
    end
    if #sets.since > 0 then
      redis.call("ZADD", q.keys.since[LEVELS[i]], unpack(sets.since))
    end
    if #sets.gone > 0 then
      redis.call("ZREM", q.keys.ready[LEVELS[i]], unpack(sets.gone))
      redis.call("ZREM", q.keys.since[LEVELS[i]], unpack(sets.gone))
    end
  end
  if #unparked > 0 then
    redis.call("ZREM", q.keys.parked, unpack(unparked))
    redis.call("ZREM", q.keys.unparking, unpack(unparked))
  end
  if #parked > 0 then
    redis.call("ZADD", q.keys.parked, unpack(parked))
  end
end

return tenants
