-- Where a tenant stands: in line on each level where it has work and may run; parked, paused or idle otherwise.
local queue = require "queue"
local tenants = require "tenants"
local time = require "time"
local throttling = require "throttling"
local pace = require "pace"
local events = require "events"

local standing = {}

-- A tenant that waits for less is being paced by its limit, many times a second, and that is no event.
local WORTH_TELLING = 1000000

local LEVELS = queue.LEVELS

local max, floor = math.max, math.floor

-- Most weights are 1: whoever asks looks at that first, which costs less than a call.
local function thousandths(weight)
  return floor(weight * 1000 + 0.5)
end

-- It has had nothing to do on any level until now; and the queue, when nobody else may run either.
local function begin_pace(q, tenant)
  for _, at in pairs(tenant.at) do
    if at.score ~= 0 then
      return
    end
  end
  pace.begin(q, tenant)
  if q.at.high.weights + q.at.normal.weights + q.at.low.weights + q.weights_parked == 0 then
    pace.begin_queue(q)
  end
end

-- The score of a tenant with new work: right before the turn that began last, behind those that came before it. So it
-- need not wait for a turn of one that has had a turn since; what that earns it is counted (see turns.lua). Progress is
-- an order of its own: where it counts, all start at the clock.
local function first_score(q, tenant, level)
  if q.settings.alpha ~= 0 then
    return tenants.new_score(q, tenant)
  end
  local line = q.at[level]
  local entry = line.weights > 0 and line.entry + 1 or queue.tick(q)
  line.entry = entry
  -- However many come at once, the next turn that ends is behind them all.
  if entry > q.clock then
    q.clock = entry
  end
  return entry + (tenant.base or 0) * 1000
end

local function enter(q, tenant, level, at)
  local line = q.at[level]
  at.present, at.changed = true, true
  if at.score == 0 then
    begin_pace(q, tenant)
    at.score = first_score(q, tenant, level)
    -- Idling earns no credit.
    at.reached = max(at.reached, line.reached)
  elseif at.since < q.slot_start then
    pace.roll(q, tenant)
  end
  local weight = tenant.weight
  at.since = q.now
  line.weights = line.weights + (weight == 1 and 1000 or thousandths(weight))
  at.virtual = line.virtual
  local entered = q.entered
  if entered then
    local count = #entered
    entered[count + 1], entered[count + 2] = tenant, level
  end
end

-- Books what the tenant was entitled to since it entered the line.
local function book(line, weight, at)
  local virtual = line.virtual
  at.entitled = at.entitled + floor(weight * (virtual - at.virtual))
  at.virtual, at.changed = virtual, true
end

-- One that still has work keeps its score and its place in the turn; one that has none forgets both. Out of line, its
-- `since` says since when.
local function leave(q, tenant, level, at, has_work)
  if at.present then
    local line, weight = q.at[level], tenant.weight
    local weights = line.weights - (weight == 1 and 1000 or thousandths(weight))
    at.present, at.since = false, q.now
    line.weights = weights > 0 and weights or 0
    book(line, weight, at)
  end
  if not has_work and at.score ~= 0 then
    at.used, at.score, at.changed = 0, 0, true
  end
end

local function settle_on(q, tenant, level, at, free, has_work)
  if not (free and has_work) then
    leave(q, tenant, level, at, has_work)
  elseif not at.present then
    enter(q, tenant, level, at)
  end
end

-- Puts the tenant where it belongs after its work, pause, override or parking changed: in line on each level where it
-- has work and may run, out of all others.
function standing.settle(q, tenant)
  local fields = tenant.fields
  local free, override = not fields.paused and not fields.parked, fields.override
  local only, at_only = next(tenant.at)
  if only and not override and not next(tenant.at, only) then
    settle_on(q, tenant, only, at_only, free, at_only.lanes > 0)
    return
  end
  for i = 1, 3 do
    local level = LEVELS[i]
    local has_work = tenants.has_work(tenant, level)
    local at = (override or has_work) and tenant.at[level] or rawget(tenant.at, level)
    if at then
      settle_on(q, tenant, level, at, free, has_work)
    end
  end
end

-- Out of line until the instant, whatever its level: a limit said no. It keeps its score.
function standing.park(q, tenant, until_us, limit)
  tenants.set_parked(tenant, limit)
  standing.settle(q, tenant)
  local weight, counts = tenant.weight, q.counts
  tenant.parked_until = until_us
  q.weights_parked = q.weights_parked + (weight == 1 and 1000 or thousandths(weight))
  throttling.note(q, tenant)
  counts.parked = (counts.parked or 0) + 1
  if until_us - q.now >= WORTH_TELLING and until_us < time.NEVER then
    local instant = string.format("%d", until_us)
    events.add(q, "tenant.parked", { "tenant", tenant.name, "reason", limit, "until", instant })
  end
end

function standing.unpark(q, tenant)
  if not tenant.fields.parked then
    return
  end
  tenant.parked_before = tenant.parked_before or tenant.fields.parked
  tenants.set_parked(tenant, nil)
  tenant.parked_until = false
  local weight, counts = tenant.weight, q.counts
  local weights = q.weights_parked - (weight == 1 and 1000 or thousandths(weight))
  counts.unparked = (counts.unparked or 0) + 1
  q.weights_parked = weights > 0 and weights or 0
  standing.settle(q, tenant)
end

-- Another weight, from now on: what was earned under the old one is booked.
function standing.reweigh(q, tenant, weight)
  for i = 1, 3 do
    local level = LEVELS[i]
    local at = rawget(tenant.at, level)
    if at and at.present then
      local line = q.at[level]
      book(line, tenant.weight, at)
      line.weights = max(0, line.weights + thousandths(weight) - thousandths(tenant.weight))
    end
  end
  if tenant.fields.parked then
    local weights = q.weights_parked + thousandths(weight) - thousandths(tenant.weight)
    q.weights_parked = max(0, weights)
  end
  tenant.weight = weight
end

-- Another head start or handicap: the places it has in line move by the difference.
function standing.rebase(tenant, base)
  local difference = (base - (tenant.base or 0)) * 1000
  for i = 1, 3 do
    local level = LEVELS[i]
    local at = rawget(tenant.at, level)
    if at and at.score ~= 0 then
      tenants.set_score(at, at.score + difference)
    end
  end
  tenant.base = base
end

return standing
