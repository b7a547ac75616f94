-- Jobs in flight at once over all queues of a group. The slots are the leases of each queue: what it has in flight is
-- its own count, of which the group keeps a copy written by the same script. While other queues wait for a slot, none
-- has more than an equal part, and where there are fewer slots than queues, one that is freed goes to another queue.
local time = require "time"

local common_slots = {}

local max, min, ceil = math.max, math.min, math.ceil

-- For so long a freed slot is left to those that wait; they have been woken.
local LEFT_TO_OTHERS = 20000

-- `others` is what the other queues have in flight, `before` what this one had by the last script. `scopes` are those
-- of this queue that it is attached to. Which others wait is added (see marks.lua).
function common_slots.open(rule, holder, scopes, others, before, now)
  return {
    meter = common_slots, rule = rule, holder = holder, scopes = scopes, others = others, before = before,
    waiting = {}, now = now, closed_until = 0, changed = false,
  }
end

-- What this queue has in flight.
function common_slots.own(state)
  local sum = 0
  for _, scope in ipairs(state.scopes) do
    sum = sum + (scope == "queue" and state.holder or state.holder.at[scope]).running
  end
  return sum
end

-- Slots that nobody has.
function common_slots.vacant(state)
  return max(0, state.rule.max - state.others - common_slots.own(state))
end

local function is_left_to_others(state, own)
  return #state.waiting + 1 > state.rule.max and own < state.before
end

local function room(state)
  local vacant = common_slots.vacant(state)
  if #state.waiting == 0 or vacant == 0 then
    return vacant
  end
  local own = common_slots.own(state)
  if is_left_to_others(state, own) then
    return 0
  end
  return max(0, min(vacant, ceil(state.rule.max / (#state.waiting + 1)) - own))
end

function common_slots.available(state)
  return state.closed_until <= state.now and room(state) or 0
end

-- A slot is free when a job ends, and nobody knows when that is.
function common_slots.instant(state, _)
  if room(state) > 0 then
    return state.closed_until
  end
  if #state.waiting > 0 and common_slots.vacant(state) > 0 and is_left_to_others(state, common_slots.own(state)) then
    return max(state.closed_until, state.now + LEFT_TO_OTHERS)
  end
  return time.NEVER
end

function common_slots.charge() end

function common_slots.refund() end

function common_slots.lasts_until()
  return 0
end

function common_slots.usage(state)
  return state.others + common_slots.own(state), 0
end

function common_slots.batch()
  return 1
end

return common_slots
