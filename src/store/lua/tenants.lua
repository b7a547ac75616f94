-- Tenants, and where they stand: in line on a level (ready), parked until an instant, paused, or with nothing to do.
-- A tenant's hash is read once, changed in memory and written once, when the script has read all it needs. What changes
-- with every turn is packed: `state` has the counts, `turn:<level>` how the tenant fares there.
local queue = require "queue"
local time = require "time"
local bucket = require "bucket"

local tenants = {}

local LEVELS = queue.LEVELS

-- Field names by level, made once.
local function by_level(prefix)
  return { high = prefix .. "high", normal = prefix .. "normal", low = prefix .. "low" }
end
local TURN, SCORE = by_level("turn:"), by_level("score:")
local VIRTUAL, WEIGHTS = by_level("virtual:"), by_level("weights:")

-- A nil value removes the field.
function tenants.set(tenant, field, value)
  tenant.fields[field] = value
  if value == nil then
    value = false
  end
  tenant.changes[field] = value
end

-- Where the lines of a level stand: there, or where the tenant's override puts them all.
function tenants.has_work(tenant, standing)
  local override, lanes = tenant.fields.level, tenant.lanes
  if not override then
    return lanes[standing] > 0
  end
  return override == standing and lanes.high + lanes.normal + lanes.low > 0
end

local function is_free(tenant)
  return not tenant.fields.paused and not tenant.fields.parked
end

-- What its turns on a level came to: cost used of the one under way (thousandths), jobs received, what it was entitled
-- to (millionths of a job) until it last entered the line, and the virtual time of that.
local function open_stand(tenant, standing, present)
  local stand = { present = present, was_present = present, used = 0, received = 0, entitled = 0, virtual = 0 }
  local turn = tenant.fields[TURN[standing]]
  if turn then
    local used, received, entitled, virtual = string.match(turn, "^(%d+) (%d+) (%d+) (%d+)$")
    stand.used, stand.received = tonumber(used), tonumber(received)
    stand.entitled, stand.virtual = tonumber(entitled), tonumber(virtual)
  end
  return stand
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
  tenant = { name = name, key = key, fields = fields, changes = {}, lines = {}, opened = {} }
  local waiting, delayed, running, total, front, marks
  if fields.state then
    waiting, delayed, running, total, front, marks =
      string.match(fields.state, "^(%d+) (%d+) (%d+) (%d+) (%d+) (%d+)$")
  end
  tenant.waiting, tenant.delayed = tonumber(waiting or 0), tonumber(delayed or 0)
  tenant.running, tenant.total = tonumber(running or 0), tonumber(total or 0)
  tenant.front, tenant.marks = tonumber(front or 0), tonumber(marks or 0)
  tenant.lanes = {
    high = tonumber(fields["lanes:high"] or 0),
    normal = tonumber(fields["lanes:normal"] or 0),
    low = tonumber(fields["lanes:low"] or 0),
  }
  tenant.weight = tonumber(fields.weight or 1)
  tenant.base = tonumber(fields.base or 0)
  tenant.was_idle = fields.idle ~= nil
  local free = is_free(tenant)
  tenant.stands = {
    high = open_stand(tenant, "high", free and tenants.has_work(tenant, "high")),
    normal = open_stand(tenant, "normal", free and tenants.has_work(tenant, "normal")),
    low = open_stand(tenant, "low", free and tenants.has_work(tenant, "low")),
  }
  loaded[name] = tenant
  loaded.list[#loaded.list + 1] = tenant
  return tenant
end

-- In microseconds: the clock, the head start or handicap, and the progress term within its bounds. What has been done
-- is what was submitted and is no longer pending, since the tenant last had nothing to do.
function tenants.new_score(q, tenant)
  local alpha, progress = q.settings.alpha, 0
  if alpha ~= 0 then
    local remaining = tenant.waiting + tenant.delayed + tenant.running
    local most = q.settings.max_progress
    progress = alpha * 1000 * math.max(0, tenant.total - remaining) / math.max(1, remaining)
    progress = math.floor(math.max(-most, math.min(most, progress)))
  end
  return queue.tick(q) + tenant.base * 1000 + progress
end

function tenants.set_score(stand, score)
  stand.score = score
  stand.score_changed = true
end

local function thousandths(weight)
  return math.floor(weight * 1000 + 0.5)
end

local function enter(q, tenant, standing, stand)
  stand.present, stand.changed = true, true
  local kept = tenant.fields[SCORE[standing]]
  tenants.set_score(stand, kept and tonumber(kept) or tenants.new_score(q, tenant))
  if kept then
    tenants.set(tenant, SCORE[standing], nil)
  end
  stand.since = q.now
  q[WEIGHTS[standing]] = q[WEIGHTS[standing]] + thousandths(tenant.weight)
  stand.virtual = q[VIRTUAL[standing]]
end

-- Books what the tenant was entitled to since it entered the line.
local function book(q, tenant, standing, stand)
  local virtual = q[VIRTUAL[standing]]
  stand.entitled = stand.entitled + math.floor(tenant.weight * (virtual - stand.virtual))
  stand.virtual, stand.changed = virtual, true
end

local function leave(q, tenant, standing, stand, keeps_score)
  if stand.present then
    if keeps_score then
      local score = stand.score or tonumber(redis.call("ZSCORE", q.keys.ready[standing], tenant.name))
      tenants.set(tenant, SCORE[standing], string.format("%.0f", score))
    end
    stand.present = false
    q[WEIGHTS[standing]] = math.max(0, q[WEIGHTS[standing]] - thousandths(tenant.weight))
    book(q, tenant, standing, stand)
  end
  if not keeps_score then
    if stand.used ~= 0 then
      stand.used, stand.changed = 0, true
    end
    if tenant.fields[SCORE[standing]] then
      tenants.set(tenant, SCORE[standing], nil)
    end
  end
end

-- Puts the tenant where it belongs after its work, pause, override or parking changed: in line on each level where it
-- has work and may run, out of all others. One that has nothing left on a level forgets its turn and its score there.
function tenants.settle(q, tenant)
  local free = is_free(tenant)
  for i = 1, 3 do
    local standing = LEVELS[i]
    local stand = tenant.stands[standing]
    local has_work = tenants.has_work(tenant, standing)
    if free and has_work then
      if not stand.present then
        enter(q, tenant, standing, stand)
      end
    elseif stand.present or not has_work then
      leave(q, tenant, standing, stand, has_work)
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
    local stand = tenant.stands[standing]
    if stand.present then
      book(q, tenant, standing, stand)
      local weights = q[WEIGHTS[standing]] + thousandths(weight) - thousandths(tenant.weight)
      q[WEIGHTS[standing]] = math.max(0, weights)
    end
  end
  tenant.weight = weight
end

-- Another head start or handicap: the places it has in line move by the difference.
function tenants.rebase(q, tenant, base)
  local difference = (base - tenant.base) * 1000
  for i = 1, 3 do
    local standing = LEVELS[i]
    local stand, kept = tenant.stands[standing], tenant.fields[SCORE[standing]]
    if stand.present then
      local score = stand.score or tonumber(redis.call("ZSCORE", q.keys.ready[standing], tenant.name))
      tenants.set_score(stand, score + difference)
    elseif kept then
      tenants.set(tenant, SCORE[standing], string.format("%.0f", tonumber(kept) + difference))
    end
  end
  tenant.base = base
end

-- Jobs of the tenant no longer run: a slot of a concurrency limit is free, and a tenant that waited for one, not for an
-- instant, is back in line.
function tenants.no_longer_runs(q, tenant, standing, count)
  tenant.running = tenant.running - count
  q.running = q.running - count
  local running = "running:" .. standing
  q[running] = q[running] - count
  if tenant.fields.parked and tonumber(redis.call("ZSCORE", q.keys.parked, tenant.name)) == time.NEVER then
    tenants.unpark(q, tenant)
  end
end

local function is_idle(tenant)
  return tenant.waiting == 0 and tenant.delayed == 0 and tenant.running == 0 and tenant.marks == 0
end

local function has_settings(tenant)
  local fields = tenant.fields
  return fields.weight or fields.base or fields.level or fields.paused or fields.limits
end

local function collect_stands(tenant, out)
  for i = 1, 3 do
    local standing = LEVELS[i]
    local stand, sets = tenant.stands[standing], out[standing]
    if stand.present then
      if not stand.was_present or stand.score_changed then
        local scores = sets.ready
        scores[#scores + 1] = string.format("%d", stand.score)
        scores[#scores + 1] = tenant.name
      end
      if stand.since then
        local since = sets.since
        since[#since + 1] = string.format("%d", stand.since)
        since[#since + 1] = tenant.name
      end
    elseif stand.was_present then
      sets.gone[#sets.gone + 1] = tenant.name
    end
    if stand.changed then
      local turn = string.format("%d %d %d %d", stand.used, stand.received, stand.entitled, stand.virtual)
      tenants.set(tenant, TURN[standing], turn)
    end
  end
end

local function write_fields(q, tenant)
  local keep = q.settings.keep_ids
  if tenant.limits then
    for _, state in ipairs(tenant.limits) do
      if state.changed then
        tenants.set(tenant, "bucket:" .. state.rule.name, bucket.stored(state, q))
      end
      if not state.holder then
        keep = math.max(keep, state.tat - q.now)
      end
    end
  end
  local idle = is_idle(tenant)
  if idle then
    tenant.total = 0
  end
  local state = string.format(
    "%d %d %d %d %d %d", tenant.waiting, tenant.delayed, tenant.running, tenant.total, tenant.front, tenant.marks
  )
  if state ~= tenant.fields.state then
    tenants.set(tenant, "state", state)
  end
  local expires = idle and not has_settings(tenant)
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
      parked[#parked + 1] = string.format("%d", tenant.parked_until)
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
