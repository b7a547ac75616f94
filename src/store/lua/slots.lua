-- Jobs in flight at once. The slots are the leases themselves: `holder[field]` counts the jobs that run, wherever that
-- is kept. Nothing is charged and nothing given back, so a crash cannot leak one.
local time = require "time"

local slots = {}

function slots.open(rule, holder, field, now)
  return { meter = slots, rule = rule, holder = holder, field = field, now = now, closed_until = 0, changed = false }
end

function slots.available(state)
  local left = state.rule.max - state.holder[state.field]
  return state.closed_until <= state.now and left > 0 and left or 0
end

-- A slot is free when a job ends, and nobody knows when that is.
function slots.instant(state, _)
  return state.holder[state.field] < state.rule.max and state.closed_until or time.NEVER
end

function slots.charge() end

function slots.refund() end

function slots.lasts_until()
  return 0
end

function slots.usage(state)
  return state.holder[state.field], 0
end

function slots.batch()
  return 1
end

return slots
