-- The claim: whose turn it is, what the limits allow, which jobs. It only decides; nothing is written here.
local queue = require "queue"
local time = require "time"
local tenants = require "tenants"
local lanes = require "lanes"
local turns = require "turns"
local record = require "record"

local claiming = {}

local GUARD_EVERY = 10 -- turns, of which one may go to an overdue tenant

-- Tenants of whom only a suspect is left, of which the process runs one already, keep their place: they are looked at
-- in every claim, so further ones go to the end of the line. A claim that has met nobody else comes again after a
-- while: there may be others behind them.
local MOST_HELD = 32
local AFTER_HELD = 100000 -- µs

local WEIGHTS = { high = "weights:high", normal = "weights:normal", low = "weights:low" }
local huge, floor, ceil = math.huge, math.floor, math.ceil

-- The module of that name, where the queue has limits.
local granting

-- `left` counts the hands still free, `jobs` holds job and record by turns, `fence` is 0 until there is a first job.
function claiming.open(q, wanted, max_bytes, has_suspect)
  turns.open(q)
  if q.limits then
    local required = require "limits"
    granting = required
  end
  q.claim = {
    left = wanted, looks = 0, held = 0, held_looks = 0, jobs = {}, fence = 0, fresh = nil, rotates = nil,
    wait_until = time.NEVER, is_closed = false, saves_up = nil,
  }
  q.bytes_left, q.suspect_taken, q.entered = max_bytes, has_suspect, {}
end

-- Not where all of them were held: looking again at once would only find the same.
function claiming.is_bounded(claim)
  return claim.looks >= turns.LOOKS and claim.held_looks < claim.looks
end

-- Nothing can be taken from it in this claim, whatever it has: one suspect at a time.
local function pass_over(q, tenant, at)
  local claim = q.claim
  claim.held = claim.held + 1
  if claim.held <= MOST_HELD then
    claim.looks = claim.looks - 1
    return
  end
  claim.held_looks = claim.held_looks + 1
  tenants.set_score(at, tenants.new_score(q, tenant))
  if claim.held_looks == turns.LOOKS then
    claim.wait_until = math.min(claim.wait_until, q.now + AFTER_HELD)
  end
end

-- What the limits of the queue or a level can grant; without any, everything.
local function available(q, scope)
  local states = granting and q.limits[scope]
  if not states or #states == 0 then
    return huge
  end
  return granting.available(states)
end

-- All lines of a tenant with an override stand on one level, its high ones first there. What stood on another level
-- than its own carries that before its record.
local function take_overridden(q, tenant, standing, count)
  local jobs, got, is_held = q.claim.jobs, 0, false
  for _, level in ipairs(queue.LEVELS) do
    if got < count and tenant.at[level].lanes > 0 then
      local from = #jobs
      local n, held = lanes.take(q, tenant, level, count - got, jobs)
      got, is_held = got + n, is_held or held
      q.claim.rotates = level
      if level ~= standing then
        for i = from + 2, #jobs, 2 do
          jobs[i] = record.standing_on(standing, jobs[i])
        end
      end
    end
  end
  return got, is_held
end

local function take(q, tenant, standing, count)
  if tenant.fields.override then
    return take_overridden(q, tenant, standing, count)
  end
  q.claim.rotates = standing
  return lanes.take(q, tenant, standing, count, q.claim.jobs)
end

-- What a tenant's own limits can grant; when that is nothing, until when and which of them.
local function available_to(q, tenant)
  if not granting then
    return huge
  end
  return granting.available(tenant.limits or granting.of_tenant(q, tenant))
end

local function charge(q, tenant, level, permits, from)
  local claim = q.claim
  local keeps = granting.charge(q, tenant, level, permits, claim.fence, from)
  if keeps then
    claim.fresh = math.min(claim.fresh or keeps, keeps)
  end
end

local function park(q, tenant, at, until_us, limit)
  local standing = require "standing"
  at.used, at.changed = 0, true
  granting.deny(q, "tenant", limit)
  standing.park(q, tenant, until_us, limit.rule.name)
end

-- A limit of the queue or a level has nothing to grant. It denies nobody when nobody is in line for it.
local function note_denied(q, scope, limit, levels)
  for i = 1, #levels do
    if q[WEIGHTS[levels[i]]] > 0 then
      granting.deny_all(q, scope, limit)
      return
    end
  end
end

-- As math.min; this costs a fifth of a call of it.
local function least(a, b, c, d)
  a = b < a and b or a
  c = d < c and d or c
  return c < a and c or a
end

-- The next job costs more than there is. Whoever lacks it waits until it is there; where that is the queue or the
-- level, all others wait with it, or what they take would keep it from ever coming together.
local function save_up(q, tenant, level, at)
  local costs = require "costs"
  local claim = q.claim
  local scope, until_us, limit = costs.lacking(q)
  if scope == 3 then
    park(q, tenant, at, until_us, limit)
    return
  end
  granting.deny_all(q, scope == 1 and "queue" or level, limit)
  claim.saves_up, claim.is_closed = scope == 1 and "queue" or level, scope == 1
  claim.wait_until = scope == 1 and until_us or math.min(claim.wait_until, until_us)
end

-- One tenant's turn, or what is left of it. It goes back in line unless it is empty, parked or held.
local function serve(q, tenant, level, allowed, is_guarded)
  local claim, at = q.claim, tenant.at[level]
  -- On two levels, and parked by its turn on the other one.
  if not at.present then
    return
  end
  local free, until_us, limit = available_to(q, tenant)
  if free == 0 then
    park(q, tenant, at, until_us, limit)
    return
  end
  local size = q.settings.quantum * tenant.weight * 1000
  local rest, from = ceil((size - at.used) / 1000), #claim.jobs
  local count = least(claim.left, rest, allowed, free)
  if q.has_costs then
    local costs = require "costs"
    count = math.min(claim.left, costs.open(q, tenant, level, rest))
  end
  q.met_suspect = false
  local got, is_held = take(q, tenant, level, count)
  if got > 0 then
    if claim.fence == 0 then
      claim.fence = queue.next_fence(q)
    end
    claim.left = claim.left - got
    local cost = q.budget and q.budget.spent or got
    if granting then
      charge(q, tenant, level, cost, from)
    end
    tenants.account(q, tenant, level, at, got, cost)
    turns.advance(q, tenant, level, at, cost)
  elseif q.budget and q.budget.need then
    save_up(q, tenant, level, at)
    return
  end
  local is_over = at.used >= size or (is_guarded and got > 0)
  if is_over then
    at.used, at.changed = at.used > size and floor(at.used - size) or 0, true
    if got > 0 then
      lanes.rotate(q, tenant, claim.rotates)
    end
  end
  if not tenants.has_work(tenant, level) then
    local standing = require "standing"
    standing.settle(q, tenant)
    return
  end
  free, until_us, limit = available_to(q, tenant)
  if is_over or (free == 0 and got > 0) then
    tenants.set_score(at, tenants.new_score(q, tenant))
  end
  if free == 0 then
    park(q, tenant, at, until_us, limit)
  elseif (not is_held or (q.budget and q.budget.is_used_up)) and (got > 0 or is_over) then
    -- Without a job it has let a turn pass that its small weight owed: its next may come in this very claim. So may
    -- that of one whose next job costs more than was left of this turn.
    turns.insert(q, level, tenant)
  elseif got == 0 and q.met_suspect then
    pass_over(q, tenant, at)
  end
end

-- The next tenant: normally of this level; every tenth turn goes to one that is overdue, wherever it stands.
local function next_turn(q, level, levels)
  if q.settings.max_wait > 0 and (q.turns + 1) % GUARD_EVERY == 0 then
    local guard = require "guard"
    local overdue, overdue_level = guard.overdue(q, levels)
    if overdue then
      q.turns = q.turns + 1
      return overdue, overdue_level, true
    end
  end
  local tenant = turns.next(q, level)
  if tenant and tenant.at[level].used == 0 then
    q.turns = q.turns + 1
  end
  return tenant, level, false
end

-- Serves one level until it has nobody, the limits close it or the hands are full.
local function claim_level(q, level, levels)
  local claim = q.claim
  local is_limited = granting and (q.limits.queue[1] or q.limits[level][1])
  local queue_free, level_free, of_queue, of_level, _ = huge, huge, nil, nil, nil
  while claim.left > 0 and claim.looks < turns.LOOKS and q.bytes_left > 0 do
    if is_limited then
      queue_free, _, of_queue = available(q, "queue")
      level_free, _, of_level = available(q, level)
    end
    if queue_free == 0 then
      note_denied(q, "queue", of_queue, levels)
      claim.is_closed = true
      claim.wait_until = granting.batch_instant(q.limits.queue, claim.left)
      return
    end
    if level_free == 0 then
      note_denied(q, level, of_level, { level })
      claim.wait_until = math.min(claim.wait_until, granting.batch_instant(q.limits[level], claim.left))
      return
    end
    local tenant, standing, is_guarded = next_turn(q, level, levels)
    if not tenant then
      return
    end
    claim.looks = claim.looks + 1
    local free = level_free
    if standing ~= level then
      free = available(q, standing)
    end
    if free > 0 then
      serve(q, tenant, standing, queue_free < free and queue_free or free, is_guarded)
    end
    if claim.saves_up and (claim.is_closed or claim.saves_up == level) then
      return
    end
  end
end

-- Tenants that this script itself brought back stand in no set yet.
local function put_back_in_line(q)
  local entered = q.entered
  if #entered == 0 then
    return
  end
  q.entered = {}
  for i = 1, #entered, 2 do
    local tenant, standing = entered[i], entered[i + 1]
    local at = tenant.at[standing]
    if at.present and not at.was_present and not at.is_in_line then
      at.is_in_line = true
      turns.insert(q, standing, tenant)
    end
  end
end

-- Goes on where it stopped when it is run again, with whom came back meanwhile.
function claiming.run(q, levels)
  put_back_in_line(q)
  for _, level in ipairs(levels) do
    if not q.claim.is_closed then
      claim_level(q, level, levels)
    end
  end
end

return claiming
