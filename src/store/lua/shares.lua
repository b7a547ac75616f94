-- Strict shares: of a limit of the queue no tenant gets more than an equal part, whether the others use theirs or not.
-- What the queue's own limit counts is one thing; here each tenant counts its part of it.
local bucket_share = require "bucket_share"
local meters = require "meters"
local window_share = require "window_share"

local shares = {}

local max = math.max

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

-- Of every limit of the queue that has a rate, the tenant's part, at the end of `states`.
function shares.open(q, tenant, states)
  for _, whole in ipairs(q.limits.queue) do
    local rule = whole.rule
    local open = rule.kind == "bucket" and bucket_share.open or rule.kind == "window" and window_share.open
    if open then
      local field = meters.field("share:" .. rule.name, rule.kind)
      states[#states + 1] = open(q, tenant.fields[field], field, whole)
    end
  end
end

return shares
