-- Tenants, and where they stand: in line on a level (ready), parked until an instant, paused, or with nothing to do.
-- A tenant's hash is read once, changed in memory and written once, when the script has read all it needs. What changes
-- with every turn is packed (MessagePack) into two fields: the counts, and one for each level the tenant has been on.
local queue = require "queue"

local tenants = {}

local LEVELS = queue.LEVELS
local pack, unpack_numbers = cmsgpack.pack, cmsgpack.unpack
local VIRTUAL = { high = "virtual:high", normal = "virtual:normal", low = "virtual:low" }
local RUNNING = { high = "running:high", normal = "running:normal", low = "running:low" }
local WEIGHTS = { high = "weights:high", normal = "weights:normal", low = "weights:low" }

-- A nil value removes the field.
function tenants.set(tenant, field, value)
  tenant.fields[field] = value
  if value == nil then
    value = false
  end
  tenant.changes = tenant.changes or {}
  tenant.changes[field] = value
end

-- Where the lines of a level stand: there, or where the tenant's override puts them all.
function tenants.has_work(tenant, standing)
  local override, at = tenant.fields.override, tenant.at
  if not override then
    local level = rawget(at, standing)
    return level ~= nil and level.lanes > 0
  end
  return override == standing and at.high.lanes + at.normal.lanes + at.low.lanes > 0
end

function tenants.is_free(tenant)
  return not tenant.fields.paused and not tenant.fields.parked
end

-- A tenant on one level. Of its lines there: how many lanes take turns, the next number of the default lane, and the
-- lane whose turn it is. Of its standing there: cost used of the turn under way (thousandths), jobs received, what it
-- was entitled to (millionths of a job) until it last entered the line, the virtual time of that, its longest wait,
-- since when it has been able to run (its last turn, or when it entered the line), and its score, 0 without work.
local function open_level(packed)
  local lanes, sequence, used, received, entitled, virtual, longest, since, score, lane = unpack_numbers(packed)
  return {
    lanes = lanes, sequence = sequence, used = used, received = received, entitled = entitled, virtual = virtual,
    longest = longest, since = since, score = score, lane = lane ~= "" and lane or nil,
    present = false, was_present = false, changed = false,
  }
end

local function pack_level(at)
  return pack(
    at.lanes, at.sequence, at.used, at.received, at.entitled, at.virtual, at.longest, at.since, at.score,
    at.lane or ""
  )
end

-- Most tenants are on one level: the others are made when somebody asks for them.
local BY_DEMAND = {
  __index = function(levels, level)
    local at = {
      lanes = 0, sequence = 0, used = 0, received = 0, entitled = 0, virtual = 0, longest = 0, since = 0, score = 0,
      present = false, was_present = false, changed = false,
    }
    rawset(levels, level, at)
    return at
  end,
}

function tenants.load(q, name)
  local loaded = q.tenants
  if not loaded then
    loaded = { list = {}, by_name = {} }
    q.tenants = loaded
  end
  local tenant = loaded.by_name[name]
  if tenant then
    return tenant
  end
  local key = q.keys.prefix .. "tenant:" .. name
  local flat = redis.call("HGETALL", key)
  local fields, at = {}, setmetatable({}, BY_DEMAND)
  tenant = {
    name = name, key = key, fields = fields, changes = nil, opened = {}, at = at,
    waiting = 0, delayed = 0, total = 0, front = 0, marks = 0, weight = 1, base = 0, limits = nil,
  }
  for i = 1, #flat, 2 do
    local field, value = flat[i], flat[i + 1]
    if field == "normal" or field == "high" or field == "low" then
      at[field] = open_level(value)
    else
      fields[field] = value
    end
  end
  if fields.state then
    tenant.waiting, tenant.delayed, tenant.total, tenant.front, tenant.marks = unpack_numbers(fields.state)
  end
  if fields.weight or fields.base then
    tenant.weight, tenant.base = tonumber(fields.weight or 1), tonumber(fields.base or 0)
  end
  tenant.was_idle = fields.idle
  if tenants.is_free(tenant) then
    for i = 1, 3 do
      local standing = LEVELS[i]
      if tenants.has_work(tenant, standing) then
        at[standing].present, at[standing].was_present = true, true
      end
    end
  end
  loaded.by_name[name] = tenant
  loaded.list[#loaded.list + 1] = tenant
  return tenant
end

-- Jobs of the tenant that run now. They are counted apart, so that a job can end without its tenant being read.
function tenants.running(q, tenant)
  if not tenant.running then
    -- What this script has started and ended so far is not written yet.
    local change = q.runs and q.runs[tenant.name] or 0
    tenant.running = tonumber(redis.call("HGET", q.keys.running, tenant.name) or 0) + change
  end
  return tenant.running
end

-- In microseconds: the clock, the head start or handicap, and the progress term within its bounds. What has been done
-- is what was submitted and is no longer pending, since the tenant last had nothing to do.
function tenants.new_score(q, tenant)
  local alpha, progress = q.settings.alpha, 0
  if alpha ~= 0 then
    local remaining = tenant.waiting + tenant.delayed + tenants.running(q, tenant)
    local most = q.settings.max_progress
    progress = alpha * 1000 * math.max(0, tenant.total - remaining) / math.max(1, remaining)
    progress = math.floor(math.max(-most, math.min(most, progress)))
  end
  return queue.tick(q) + tenant.base * 1000 + progress
end

function tenants.set_score(at, score)
  at.score, at.score_changed, at.changed = score, true, true
end

-- Nothing waits, and nothing is to come: the tenant may be forgotten after a while. What still runs is counted apart,
-- and comes back to a tenant that is made anew if need be.
local function is_idle(tenant)
  return tenant.waiting == 0 and tenant.delayed == 0 and tenant.marks == 0
end

local function has_settings(tenant)
  local fields = tenant.fields
  return fields.weight or fields.base or fields.override or fields.paused or fields.limits
end

-- The places the tenant has taken and left, and what of its levels is to be written.
local function collect_levels(tenant, out, sets)
  local name = tenant.name
  for i = 1, 3 do
    local level = LEVELS[i]
    local at = rawget(tenant.at, level)
    if at then
      local places = out[level]
      if at.present then
        if not at.was_present or at.score_changed then
          local ready = places.ready
          ready[#ready + 1] = string.format("%d", at.score)
          ready[#ready + 1] = name
        end
        if not at.was_present or at.since_corrected then
          local since = places.since
          since[#since + 1] = string.format("%d", at.since)
          since[#since + 1] = name
        end
      elseif at.was_present then
        places.gone[#places.gone + 1] = name
      end
      if at.changed then
        sets[#sets + 1] = level
        sets[#sets + 1] = pack_level(at)
      end
    end
  end
end

-- Answers how long the tenant must be kept: as long as ids are, and until its buckets are full again.
local function save_limits(q, tenant)
  local bucket = require "bucket"
  local keep = q.settings.keep_ids
  for _, state in ipairs(tenant.limits) do
    if state.changed then
      tenants.set(tenant, "bucket:" .. state.rule.name, bucket.stored(state, q))
    end
    if not state.holder then
      keep = math.max(keep, state.tat - q.now)
    end
  end
  return keep
end

local function write(q, tenant, out)
  local keep = tenant.limits and save_limits(q, tenant) or q.settings.keep_ids
  local sets, deletes = {}, nil
  collect_levels(tenant, out, sets)
  local state = pack(tenant.waiting, tenant.delayed, tenant.total, tenant.front, tenant.marks)
  if state ~= tenant.fields.state then
    sets[#sets + 1] = "state"
    sets[#sets + 1] = state
  end
  local expires = is_idle(tenant) and not has_settings(tenant)
  if expires and not tenant.was_idle then
    tenants.set(tenant, "idle", "1")
  elseif not expires and tenant.was_idle then
    tenants.set(tenant, "idle", nil)
  end
  if tenant.changes then
    deletes = {}
    for field, value in pairs(tenant.changes) do
      if value == false then
        deletes[#deletes + 1] = field
      else
        sets[#sets + 1] = field
        sets[#sets + 1] = value
      end
    end
  end
  if #sets > 0 then
    redis.call("HSET", tenant.key, unpack(sets))
  end
  if deletes and #deletes > 0 then
    redis.call("HDEL", tenant.key, unpack(deletes))
  end
  if expires and not tenant.was_idle then
    redis.call("PEXPIRE", tenant.key, math.ceil(keep / 1000))
  elseif not expires and tenant.was_idle then
    redis.call("PERSIST", tenant.key)
  end
end

-- Jobs of a tenant that is in line were started: what that means for its share.
function tenants.account(q, tenant, standing, at, count)
  tenant.waiting, q.waiting = tenant.waiting - count, q.waiting - count
  tenants.runs(q, tenant.name, standing, count)
  local virtual = VIRTUAL[standing]
  q[virtual] = q[virtual] + math.floor(count * 1e9 / math.max(q[WEIGHTS[standing]], 1))
  at.received, at.used = at.received + count, at.used + count * 1000
  at.longest = math.max(at.longest, q.now - at.since)
  at.since, at.changed = q.now, true
end

-- How many more or fewer of a tenant's jobs run now; written with everything else.
function tenants.runs(q, name, standing, count)
  q.runs[name] = (q.runs[name] or 0) + count
  q.running = q.running + count
  local running = RUNNING[standing]
  q[running] = q[running] + count
  local tenant = q.tenants and q.tenants.by_name[name]
  if tenant and tenant.running then
    tenant.running = tenant.running + count
  end
end

local function save_running(q)
  for name, change in pairs(q.runs) do
    if change ~= 0 and redis.call("HINCRBY", q.keys.running, name, change) <= 0 then
      redis.call("HDEL", q.keys.running, name)
    end
  end
end

-- Writes every loaded tenant and its places in line. Only from here on does a script write.
function tenants.save(q)
  if q.runs then
    save_running(q)
  end
  if not q.tenants then
    return
  end
  local out = {}
  for i = 1, 3 do
    out[LEVELS[i]] = { ready = {}, since = {}, gone = {} }
  end
  local parked, unparked, lifted = {}, {}, {}
  for _, tenant in ipairs(q.tenants.list) do
    if tenant.parked_until then
      parked[#parked + 1] = string.format("%d", tenant.parked_until)
      parked[#parked + 1] = tenant.name
      if tenant.parked_before == tenant.fields.parked then
        tenant.changes.parked = nil
      end
    elseif tenant.was_parked then
      unparked[#unparked + 1] = tenant.name
    end
    -- Whether it is parked again or not, it waits among the unparking no longer.
    if tenant.was_parked then
      lifted[#lifted + 1] = tenant.name
    end
    write(q, tenant, out)
  end
  for i = 1, 3 do
    local level, sets = LEVELS[i], out[LEVELS[i]]
    if #sets.ready > 0 then
      redis.call("ZADD", q.keys.ready[level], unpack(sets.ready))
    end
    if #sets.since > 0 then
      redis.call("ZADD", q.keys.since[level], unpack(sets.since))
    end
    if #sets.gone > 0 then
      redis.call("ZREM", q.keys.ready[level], unpack(sets.gone))
      redis.call("ZREM", q.keys.since[level], unpack(sets.gone))
    end
  end
  if #unparked > 0 then
    redis.call("ZREM", q.keys.parked, unpack(unparked))
  end
  if #lifted > 0 then
    redis.call("ZREM", q.keys.unparking, unpack(lifted))
  end
  if #parked > 0 then
    redis.call("ZADD", q.keys.parked, unpack(parked))
  end
end

return tenants
