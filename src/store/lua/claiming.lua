-- The claim: whose turn it is, what the limits allow, which jobs. It only decides; nothing is written here.
local queue = require "queue"
local time = require "time"
local tenants = require "tenants"
local lanes = require "lanes"
local turns = require "turns"
local granting = require "granting"
local record = require "record"
local costs = require "costs"
local standing = require "standing"
local guard = require "guard"

local claiming = {}

local GUARD_EVERY = 10 -- turns, of which one may go to an overdue tenant

-- Tenants of whom only a suspect is left, of which the process runs one already, keep their place: they are looked at
-- in every claim, so further ones go to the end of the line. A claim that has met nobody else comes again after a
-- while: there may be others behind them.
local MOST_HELD = 32
local AFTER_HELD = 100000 -- µs

local huge, floor, ceil = math.huge, math.floor, math.ceil

-- `left` counts the hands still free, `jobs` holds job and record by turns, `fence` is 0 until there is a first job.
function claiming.open(q, wanted, max_bytes, has_suspect)
  turns.open(q)
  q.claim = {
    left = wanted, looks = 0, held = 0, held_looks = 0, jobs = {}, fence = 0, fresh = nil, rotates = nil,
    wait_until = time.NEVER, is_closed = false, saving = nil,
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

-- All lines of a tenant with an override stand on one level, its high ones first there: no other passes one that costs
-- more than there is. What stood on another level than its own carries that before its record.
local function take_overridden(q, tenant, stands_on, count)
  local jobs, budget, got, is_held = q.claim.jobs, q.budget, 0, false
  for _, level in ipairs(queue.LEVELS) do
    local is_saved_for = budget and (budget.need or budget.is_used_up)
    if got < count and tenant.at[level].lanes > 0 and not is_saved_for then
      local from = #jobs
      local n, held = lanes.take(q, tenant, level, count - got, jobs)
      got, is_held = got + n, is_held or held
      q.claim.rotates = level
      if level ~= stands_on then
        for i = from + 2, #jobs, 2 do
          jobs[i] = record.standing_on(stands_on, jobs[i])
        end
      end
    end
  end
  return got, is_held
end

-- As math.min; this costs a fifth of a call of it.
local function least(a, b, c, d)
  a = b < a and b or a
  c = d < c and d or c
  return c < a and c or a
end

-- One tenant's turn, or what is left of it. It goes back in line unless it is empty, parked or held.
local function serve(q, tenant, level, allowed, is_guarded)
  local claim, at = q.claim, tenant.at[level]
  -- On two levels, and parked by its turn on the other one.
  if not at.present then
    return
  end
  local free, until_us, limit = huge, nil, nil
  if q.limits then
    free, until_us, limit = granting.available_to(q, tenant)
    if free == 0 then
      granting.park(q, tenant, at, until_us, limit)
      return
    end
  end
  local size = q.settings.quantum * tenant.weight * 1000
  local rest, from = ceil((size - at.used) / 1000), #claim.jobs
  local count = least(claim.left, rest, allowed, free)
  if q.has_costs then
    count = math.min(claim.left, costs.open(q, tenant, level, rest))
  end
  q.met_suspect = false
  local cost = 0
  local got, is_held
  if tenant.fields.override then
    got, is_held = take_overridden(q, tenant, level, count)
  else
    claim.rotates = level
    got, is_held = lanes.take(q, tenant, level, count, claim.jobs)
  end
  if got > 0 then
    if claim.fence == 0 then
      claim.fence = queue.next_fence(q)
    end
    claim.left = claim.left - got
    cost = q.budget and q.budget.spent or got
    if q.limits then
      granting.charge(q, tenant, level, cost, from)
    end
    tenants.account(q, tenant, level, at, got, cost)
    turns.advance(q, tenant, level, at, cost)
  elseif q.budget and q.budget.need then
    granting.save_up(q, tenant, level, at)
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
    standing.settle(q, tenant)
    return
  end
  if q.limits then
    -- Each job has taken one of it. A strict share, or a limit that is shared, can have less left than that.
    if q.limits.active or q.group or free < cost then
      free, until_us, limit = granting.available_to(q, tenant)
    elseif free == cost then
      free, until_us, limit = granting.used_up(q, tenant)
    end
  end
  if is_over or (free == 0 and got > 0) then
    tenants.set_score(at, tenants.new_score(q, tenant))
  end
  if free == 0 then
    granting.park(q, tenant, at, until_us, limit)
  elseif (not is_held or (q.budget and q.budget.is_used_up)) and (got > 0 or is_over) then
    -- Without a job it has let a turn pass that its small weight owed: its next may come in this very claim. So may
    -- that of one whose next job costs more than was left of this turn.
    turns.insert(q, level, tenant)
  elseif got == 0 and q.met_suspect then
    pass_over(q, tenant, at)
  end
end

local function saves_up(claim, level)
  return claim.saving and claim.saving[level]
end

-- Those of the levels on which somebody can be given a turn.
local function open_of(q, levels)
  local limited = q.limits
  if not limited or not (q.claim.saving or limited.high[1] or limited.normal[1] or limited.low[1]) then
    return levels
  end
  local open = {}
  for i = 1, #levels do
    local level = levels[i]
    if not saves_up(q.claim, level) and granting.available(q, level) > 0 then
      open[#open + 1] = level
    end
  end
  return open
end

-- The next tenant: normally of this level; every tenth turn goes to one that is overdue, wherever it stands.
local function next_turn(q, level, levels)
  if q.settings.max_wait > 0 and (q.turns + 1) % GUARD_EVERY == 0 then
    local overdue, overdue_level = guard.overdue(q, open_of(q, levels))
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

-- Serves one level until it has nobody, the limits close it or the hands are full. What the queue and the level can
-- grant is asked when it is used up: meanwhile each job takes one of it. Not where jobs can cost more, or other queues
-- share a limit.
local function claim_level(q, level, levels)
  local claim = q.claim
  local is_limited = q.limits and (q.limits.queue[1] or q.limits[level][1])
  local asks_always = q.has_costs or q.group
  local queue_free, level_free = is_limited and 0 or huge, huge
  while claim.left > 0 and claim.looks < turns.LOOKS and q.bytes_left > 0 do
    if is_limited and (queue_free == 0 or level_free == 0 or asks_always) then
      queue_free, level_free = granting.room(q, level, levels)
      if queue_free == 0 or level_free == 0 then
        return
      end
    end
    local tenant, stands_on, is_guarded = next_turn(q, level, levels)
    if not tenant then
      return
    end
    claim.looks = claim.looks + 1
    local free, left = level_free, claim.left
    if q.limits and stands_on ~= level then
      free = granting.available(q, stands_on)
    end
    serve(q, tenant, stands_on, queue_free < free and queue_free or free, is_guarded)
    local got = left - claim.left
    queue_free = queue_free - got
    level_free = stands_on == level and level_free - got or level_free
    if claim.saving and (claim.is_closed or claim.saving[level]) then
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
    local tenant, stands_on = entered[i], entered[i + 1]
    local at = tenant.at[stands_on]
    if at.present and not at.was_present and not at.is_in_line then
      at.is_in_line = true
      turns.insert(q, stands_on, tenant)
    end
  end
end

-- Goes on where it stopped when it is run again, with whom came back meanwhile.
function claiming.run(q, levels)
  put_back_in_line(q)
  for _, level in ipairs(levels) do
    if not q.claim.is_closed and not saves_up(q.claim, level) then
      claim_level(q, level, levels)
    end
  end
end

return claiming
