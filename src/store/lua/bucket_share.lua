-- A tenant's strict share of a bucket that the queue stands under: a bucket that is so many times slower.
local bucket = require "bucket"
local window_share = require "window_share"

local bucket_share = {}

local max, min, floor = math.max, math.min, math.floor

-- At least one in a window, however many they are: the queue's own limit sees to the sum.
function bucket_share.open(q, stored, field, whole)
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
  state.meter, state.field, state.active = bucket_share, field, active
  return state
end

-- Others may leave, or the limit may change, long before the part has its next permit.
function bucket_share.instant(state, permits)
  return min(bucket.instant(state, permits), window_share.asks_again(state))
end

bucket_share.available = bucket.available
bucket_share.charge = bucket.charge
bucket_share.refund = bucket.refund
bucket_share.lasts_until = bucket.lasts_until
bucket_share.stored = bucket.stored
bucket_share.usage = bucket.usage
bucket_share.batch = bucket.batch

return bucket_share
