-- Strict shares: of a limit of the queue no tenant gets more than an equal part, whether the others use theirs or not.
-- What the queue's own limit counts is one thing; here each tenant counts its part of it. Of a bucket the part is a
-- bucket that is so many times slower; of a window it is window_share.lua's.
local bucket = require "bucket"
local meters = require "meters"
local window_share = require "window_share"

local shares = {}

local max, floor = math.max, math.floor

-- Whoever stands in line or is parked. Read when a script begins; who comes and goes in it counts from the next. One
-- that is in line on several levels counts on each: the parts are never too large, and finding out costs too much
-- (decision 0018).
function shares.active(q)
  local active = 0
  for _, key in pairs(q.keys.ready) do
    active = active + redis.call("ZCARD", key)
  end
  return max(1, active + redis.call("ZCARD", q.keys.parked) + redis.call("ZCARD", q.keys.unparking))
end

-- At least one in a window, however many they are: the queue's own limit sees to the sum.
local function open_bucket(q, stored, field, whole)
  local rule, active = whole.rule, q.limits.active
  local burst = max(1, floor(rule.burst / active))
  local per_window = rule.count - rule.burst + 1
  local part = {
    name = rule.name, kind = "bucket", count = per_window - 1 + burst, window = rule.window, burst = burst,
    jitter = rule.jitter, is_share = true,
  }
  local pace = (whole.interval_before or whole.interval) / bucket.interval(rule, whole.jitter)
  local share = max(1 / active, 1 / per_window) / pace
  local state = bucket.open(part, stored, whole.jitter, q, q.now, share)
  state.field = field
  return state
end

-- Of every limit of the queue that has a rate, the tenant's part, at the end of `states`.
function shares.open(q, tenant, states)
  for _, whole in ipairs(q.limits.queue) do
    local rule = whole.rule
    local open = rule.kind == "bucket" and open_bucket or rule.kind == "window" and window_share.open
    if open then
      local field = meters.field("share:" .. rule.name, rule.kind)
      states[#states + 1] = open(q, tenant.fields[field], field, whole)
    end
  end
end

return shares
