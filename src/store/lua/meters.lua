-- The kinds of limits. What a limit counts is its meter's: bucket, window, quota or slots. Each of these modules opens
-- a state and answers from it: what is `available` now, the `instant` at which so many permits can be granted, how many
-- are worth waiting for (`batch`), the `usage`, and until when it says something (`lasts_until`). It can `charge` and
-- `refund` permits, and says what is `stored`.
local bucket = require "bucket"
local jitter = require "jitter"
local window = require "window"
local quota = require "quota"
local pushback = require "pushback"
local slots = require "slots"
local reservations = require "reservations"

local meters = {}

function meters.of(kind)
  if kind == "bucket" then
    return bucket
  elseif kind == "window" then
    return window
  end
  return quota
end

-- `owner` is the queue, or the group of queues, whose restarts count, and when the store had lost it (`lost_at`).
-- `stored` is what the limit counted so far, `pushed` what it learnt from an upstream that pushed back.
function meters.open(owner, rule, field, stored, known, pushed_field, pushed)
  local now, width = owner.now, nil
  if known then
    width = known.rule == rule and known.began or jitter.within(rule, known.began)
  end
  if not pushed then
    local state = meters.of(rule.kind).open(rule, stored, width, owner, now, 1)
    state.known, state.field, state.pushed_field = known, field, pushed_field
    return state
  end
  local learnt = pushback.open(pushed, now)
  local state = meters.of(rule.kind).open(rule, stored, width, owner, now, pushback.share(learnt))
  state.known, state.field, state.pushed_field, state.pushed = known, field, pushed_field, learnt
  state.closed_until = math.max(state.closed_until, learnt.closed_until)
  return state
end

-- `state` counts slots.
function meters.close_pushed(state, pushed_field, pushed)
  state.pushed_field = pushed_field
  if pushed then
    state.pushed = pushback.open(pushed, state.now)
    state.closed_until = state.pushed.closed_until
  end
  return state
end

function meters.hold(owner, rule, holder, field, pushed_field, pushed)
  return meters.close_pushed(slots.open(rule, holder, field, owner.now), pushed_field, pushed)
end

-- Of a quota: while no job runs none is in flight, but for what callers without a job have reserved.
function meters.land(state, has_landed, reserved)
  if has_landed then
    state.meter.lands(state)
  end
  if reserved then
    reservations.open(state, reserved, has_landed)
  end
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

-- The first limit of that name, and of that kind if one is given, in these lists of states; and which list it is in.
function meters.named(lists, name, kind)
  for i = 1, #lists do
    for _, state in ipairs(lists[i]) do
      if state.rule.name == name and (not kind or state.rule.kind == kind) then
        return state, i
      end
    end
  end
  return nil
end

-- What changed of a limit, as fields and values at the end of `sets`. Answers how many those are now.
local function collect(q, state, sets, count)
  if state.changed then
    sets[count + 1], sets[count + 2] = state.field, state.meter.stored(state, q)
    count = count + 2
  end
  if state.pushed_changed then
    sets[count + 1], sets[count + 2] = state.pushed_field, pushback.stored(state.pushed)
    count = count + 2
  end
  if state.reserved_changed then
    sets[count + 1], sets[count + 2] = state.field .. "/reserved", reservations.stored(state)
    count = count + 2
  end
  return count
end

meters.collect = collect

-- The same of all limits of a tenant, the first to be written of it. Answers as well how long the tenant must be kept:
-- for `keep`, and while its limits remember something.
function meters.collect_all(q, states, sets, keep)
  local count, now = 0, q.now
  for i = 1, #states do
    local state = states[i]
    count = collect(q, state, sets, count)
    local lasts, closed = state.meter.lasts_until(state) - now, state.closed_until - now
    if lasts > keep then
      keep = lasts
    end
    if closed > keep then
      keep = closed
    end
  end
  return count, keep
end

return meters
