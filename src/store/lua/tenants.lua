-- Tenants, and where they stand: in line on a level (ready), parked until an instant, paused, or with nothing to do.
-- A tenant's hash is read once, changed in memory and written once, when the script has read all it needs. What changes
-- with every turn is packed (MessagePack) into two fields: the counts, and one for each level the tenant has been on.
local queue = require "queue"
local decimal = require "decimal"
local meters = require "meters"
local pace = require "pace"
local parking = require "parking"

local tenants = {}

local pack, unpack_numbers, format = cmsgpack.pack, cmsgpack.unpack, string.format
local floor, tick, TURN = math.floor, queue.tick, queue.TURN

-- Most tenants have no field but the packed ones: they share this.
local NO_FIELDS = {}
-- The counts of one that is not known yet, packed.
local NOTHING = "\0\0\0\0\0"

-- A nil value removes the field.
function tenants.set(tenant, field, value)
  if tenant.fields == NO_FIELDS then
    tenant.fields = {}
  end
  tenant.fields[field] = value
  if value == nil then
    value = false
  end
  tenant.changes = tenant.changes or {}
  tenant.changes[field] = value
end

-- By which limit it is parked; nil: none. Written when that differs from what it was.
function tenants.set_parked(tenant, limit)
  if tenant.fields == NO_FIELDS then
    tenant.fields = {}
  end
  tenant.fields.parked = limit
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
-- since when it has been able to run (its last turn, or when it entered the line) or out of line, its score, 0 without
-- work, and how far in the rounds of the level it has been served (see turns.lua).
-- What is not set yet is false: present, was_present, changed, score_changed, is_in_line. There is room for six of
-- these, and for three in a tenant: a table that outgrows its 16 places is made anew, and a larger one costs each time.
local function open_level(packed)
  local lanes, sequence, used, received, entitled, virtual, longest, since, score, lane, reached =
    unpack_numbers(packed)
  return {
    lanes = lanes, sequence = sequence, used = used, received = received, entitled = entitled, virtual = virtual,
    longest = longest, since = since, score = score, lane = lane ~= "" and lane or nil, reached = reached or 0,
  }
end

local function pack_level(at)
  return pack(
    at.lanes, at.sequence, at.used, at.received, at.entitled, at.virtual, at.longest, at.since, at.score,
    at.lane or "", at.reached
  )
end

-- Most tenants are on one level: the others are made when somebody asks for them.
local BY_DEMAND = {
  __index = function(levels, level)
    local at = {
      lanes = 0, sequence = 0, used = 0, received = 0, entitled = 0, virtual = 0, longest = 0, since = 0, score = 0,
      reached = 0,
    }
    rawset(levels, level, at)
    return at
  end,
}

-- Where a tenant that is not in line wherever it has work stood before this script.
local function correct_places(tenant)
  for _, at in pairs(tenant.at) do
    at.present, at.was_present = false, false
  end
  local override = tenant.fields.override
  if override and tenants.is_free(tenant) and tenants.has_work(tenant, override) then
    local at = tenant.at[override]
    at.present, at.was_present = true, true
  end
end

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
  local fields, at, state = NO_FIELDS, setmetatable({ normal = nil }, BY_DEMAND), false
  local packed_pace = ""
  for i = 1, #flat, 2 do
    local field, value = flat[i], flat[i + 1]
    if field == "state" then
      state = value
    elseif field == "pace" then
      packed_pace = value
    elseif field == "normal" or field == "high" or field == "low" then
      local level = open_level(value)
      if level.lanes > 0 then
        level.present, level.was_present = true, true
      end
      at[field] = level
    else
      if fields == NO_FIELDS then
        fields = {}
      end
      fields[field] = value
    end
  end
  local waiting, delayed, total, front, marks, throttled = unpack_numbers(state or NOTHING)
  tenant = {
    name = name, key = key, fields = fields, at = at, stored_state = state,
    waiting = waiting, delayed = delayed, total = total, front = front, marks = marks, weight = 1,
    throttled = throttled or 0, pace = packed_pace,
  }
  if fields ~= NO_FIELDS then
    if fields.weight or fields.base then
      tenant.weight, tenant.base = tonumber(fields.weight or 1), tonumber(fields.base)
    end
    if fields.paused or fields.parked or fields.override then
      correct_places(tenant)
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
    q.knows_running = true
  end
  return tenant.running
end

-- As many as ran when the script began.
function tenants.ran(q, tenant)
  return tenants.running(q, tenant) - (q.runs and q.runs[tenant.name] or 0)
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
  return tick(q, TURN) + (tenant.base or 0) * 1000 + progress
end

function tenants.set_score(at, score)
  at.score, at.score_changed, at.changed = score, true, true
end

-- Nothing waits, and nothing is to come: the tenant may be forgotten after a while. What still runs is counted apart,
-- and comes back to a tenant that is made anew if need be. A lane that was dropped with its action is one that the
-- tenant still stands in line for, until a claim finds it empty.
local function is_idle(tenant)
  if tenant.delayed ~= 0 or tenant.marks ~= 0 then
    return false
  end
  for _, level in pairs(tenant.at) do
    if level.lanes > 0 then
      return false
    end
  end
  return true
end

local function has_settings(tenant)
  local fields = tenant.fields
  return fields.weight or fields.base or fields.override or fields.paused or fields.limits
end

-- What is to be written to the sets of a level.
local function places_of(out, level)
  local places = out.levels[level]
  if not places then
    places = { ready = {}, since = {}, gone = {} }
    out.levels[level] = places
  end
  return places
end

local function note(list, first, second)
  local at = #list
  list[at + 1], list[at + 2] = first, second
end

-- The places the tenant has taken and left on a level.
local function collect_places(tenant, level, at, out)
  if at.present then
    if not at.was_present or at.score_changed then
      note(places_of(out, level).ready, format("%d", at.score), tenant.name)
    end
    if not at.was_present or at.since_corrected then
      -- Those who enter the line in one script do so at one instant.
      if at.since ~= out.since then
        out.since, out.since_text = at.since, format("%d", at.since)
      end
      note(places_of(out, level).since, out.since_text, tenant.name)
    end
  elseif at.was_present then
    note(places_of(out, level).gone, tenant.name)
  end
end

-- Tenants by backlog, for whoever asks who is behind most: how many binary digits the number of waiting jobs has.
-- Written when that grows, with the first turn of a slot of time (see pace.lua), and when nothing is left: a turn as
-- such writes nothing. So it is right within a factor of two, but for what was started in the last few seconds. Only
-- scripts that let jobs wait, or take them, have the key.
local RANKED_FROM = 8
tenants.RANKED_FROM = RANKED_FROM

local function rank(tenant, out)
  if tenant.waiting >= RANKED_FROM then
    local _, digits = math.frexp(tenant.waiting)
    note(out.ranked, decimal.of(digits), tenant.name)
  elseif tenant.waiting == 0 or tenant.is_paced_anew then
    note(out.unranked, tenant.name)
  end
end

-- `sets` is the one list of fields and values that all tenants share.
local function write(q, tenant, out, sets)
  local count, keep, deletes = 0, q.settings.keep_ids, nil
  if tenant.limits then
    count, keep = meters.collect_all(q, tenant.limits, sets, keep)
  end
  local parked, parked_before = tenant.fields.parked, tenant.parked_before
  if tenant.parked_until and parked ~= parked_before then
    sets[count + 1], sets[count + 2] = "parked", parked
    count = count + 2
  elseif parked_before and not parked then
    deletes = { "parked" }
  end
  for level, at in pairs(tenant.at) do
    collect_places(tenant, level, at, out)
    if at.changed then
      sets[count + 1], sets[count + 2] = level, pack_level(at)
      count = count + 2
    end
  end
  if tenant.opened_pace or tenant.begun_pace then
    local packed_pace = pace.stored(tenant)
    if packed_pace ~= tenant.pace then
      sets[count + 1], sets[count + 2] = "pace", packed_pace
      count = count + 2
    end
  end
  local state
  if tenant.throttled == 0 then
    -- Most never were, and do without that number.
    state = pack(tenant.waiting, tenant.delayed, tenant.total, tenant.front, tenant.marks)
  else
    state = pack(tenant.waiting, tenant.delayed, tenant.total, tenant.front, tenant.marks, tenant.throttled)
  end
  if state ~= tenant.stored_state then
    sets[count + 1], sets[count + 2] = "state", state
    count = count + 2
  end
  local was_idle = tenant.fields.idle
  local expires = tenant.waiting == 0 and is_idle(tenant) and not has_settings(tenant)
  if expires and not was_idle then
    tenants.set(tenant, "idle", "1")
  elseif not expires and was_idle then
    tenants.set(tenant, "idle", nil)
  end
  if tenant.changes then
    for field, value in pairs(tenant.changes) do
      if value == false then
        deletes = deletes or {}
        deletes[#deletes + 1] = field
      else
        sets[count + 1], sets[count + 2] = field, value
        count = count + 2
      end
    end
  end
  if count > 0 then
    redis.call("HSET", tenant.key, unpack(sets, 1, count))
  end
  if deletes then
    redis.call("HDEL", tenant.key, unpack(deletes))
  end
  if expires and not was_idle then
    redis.call("PEXPIRE", tenant.key, math.ceil(keep / 1000))
  elseif not expires and was_idle then
    redis.call("PERSIST", tenant.key)
  end
end

-- Jobs of a tenant that is in line were started: what that means for its share, which goes by cost.
function tenants.account(q, tenant, standing, at, count, cost)
  tenant.waiting, q.waiting = tenant.waiting - count, q.waiting - count
  tenants.runs(q, tenant.name, standing, count)
  local line, now = q.at[standing], q.now
  line.virtual = line.virtual + floor(cost * 1e9 / (line.weights > 1 and line.weights or 1))
  if at.since < q.slot_start then
    pace.roll(q, tenant)
  end
  if cost ~= count then
    pace.discount_cost(tenant, cost - count)
  end
  local waited = now - at.since
  if waited > at.longest then
    at.longest = waited
  end
  at.received, at.used = at.received + cost, at.used + cost * 1000
  at.since, at.changed = now, true
end

-- How many more or fewer of a tenant's jobs run now; written with everything else.
function tenants.runs(q, name, standing, count)
  local runs, line = q.runs, q.at[standing]
  runs[name] = (runs[name] or 0) + count
  q.running, line.running = q.running + count, line.running + count
  if q.knows_running then
    local tenant = q.tenants.by_name[name]
    if tenant and tenant.running then
      tenant.running = tenant.running + count
    end
  end
end

-- All at once: one call for each tenant would be half of what a claim of many tenants calls.
local function save_running(q)
  local names = {}
  for name, change in pairs(q.runs) do
    if change ~= 0 then
      names[#names + 1] = name
    end
  end
  if #names == 0 then
    return
  end
  local sets, deletes = {}, {}
  local before = redis.call("HMGET", q.keys.running, unpack(names))
  for i, name in ipairs(names) do
    local running = (before[i] or 0) + q.runs[name]
    if running > 0 then
      note(sets, name, decimal.of(running))
    else
      note(deletes, name)
    end
  end
  if #sets > 0 then
    redis.call("HSET", q.keys.running, unpack(sets))
  end
  if #deletes > 0 then
    redis.call("HDEL", q.keys.running, unpack(deletes))
  end
end

local function save_ranks(q, out)
  if #out.ranked > 0 then
    redis.call("ZADD", q.keys.backlog, unpack(out.ranked))
  end
  if #out.unranked > 0 then
    redis.call("ZREM", q.keys.backlog, unpack(out.unranked))
  end
end

local function save_places(q, out)
  for level, places in pairs(out.levels) do
    if #places.ready > 0 then
      redis.call("ZADD", q.keys.ready[level], unpack(places.ready))
    end
    if #places.since > 0 then
      redis.call("ZADD", q.keys.since[level], unpack(places.since))
    end
    if #places.gone > 0 then
      redis.call("ZREM", q.keys.ready[level], unpack(places.gone))
      redis.call("ZREM", q.keys.since[level], unpack(places.gone))
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
  local out = { levels = {}, ranked = {}, unranked = {}, since = 0, since_text = "0" }
  local sets, backlog_key = {}, q.keys.backlog
  local list, is_any_parked = q.tenants.list, false
  for i = 1, #list do
    local tenant = list[i]
    if tenant.parked_until or tenant.parked_before then
      is_any_parked = true
    end
    if backlog_key and (tenant.has_grown or tenant.is_paced_anew or tenant.waiting == 0) then
      rank(tenant, out)
    end
    write(q, tenant, out, sets)
  end
  save_places(q, out)
  save_ranks(q, out)
  if is_any_parked then
    parking.save(q)
  end
end

return tenants
