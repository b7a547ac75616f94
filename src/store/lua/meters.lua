-- The kinds of limits. What a limit counts is its meter's: bucket, window, quota or slots. Each of these modules opens
-- a state and answers from it: what is `available` now, the `instant` at which so many permits can be granted, how many
-- are worth waiting for (`batch`), the `usage`, and until when it says something (`lasts_until`). It can `charge` and
-- `refund` permits, and says what is `stored`.
local bucket = require "bucket"

local meters = {}

-- Loaded when a queue has such a limit.
function meters.of(kind)
  if kind == "bucket" then
    return bucket
  elseif kind == "window" then
    local window = require "window"
    return window
  end
  local quota = require "quota"
  return quota
end

function meters.slots(rule, holder, field, now)
  local slots = require "slots"
  return slots.open(rule, holder, field, now)
end

-- The state of one kind says nothing to another: a limit whose kind was changed starts anew. Buckets, which are most of
-- them, have the bare name.
function meters.field(name, kind)
  return kind == "bucket" and name or name .. "/" .. kind
end

-- Only these depend on the way to the upstream.
function meters.has_jitter(rule)
  return rule.kind == "bucket" or rule.kind == "window"
end

-- A tenant can wait without an instant under these: for a slot, or for an answer.
function meters.may_hold(rule)
  return rule.kind == "concurrency" or rule.kind == "quota"
end

-- What changed of a limit, as fields and values at the end of `sets`. Answers how many those are now.
function meters.collect(q, state, sets, count)
  if state.changed then
    sets[count + 1], sets[count + 2] = state.field, state.meter.stored(state, q)
    count = count + 2
  end
  if state.pushed_changed then
    local pushback = require "pushback"
    sets[count + 1], sets[count + 2] = state.pushed_field, pushback.stored(state.pushed)
    count = count + 2
  end
  return count
end

return meters
