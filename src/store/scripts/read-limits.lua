#!lua flags=no-writes
-- The state of every limit a tenant stands under, or of the queue's and levels' own without one.
-- Replies {"limits", active tenants, rows}; a row is {scope, name, kind, limit, window µs, burst, jitter µs, available,
-- used, next grant in µs, full again in µs}. Or {"unregistered"}.
local time = require "time"
local queue = require "queue"
local limits = require "limits"
local tenants = require "tenants"
local bucket = require "bucket"
local queue_key = KEYS[1] -- hash: the queue's state
local ready_high_key = KEYS[2] -- zset: tenant → score
local ready_normal_key = KEYS[3] -- zset: tenant → score
local ready_low_key = KEYS[4] -- zset: tenant → score
local parked_key = KEYS[5] -- zset: tenant → instant
local unparking_key = KEYS[6] -- zset: tenants parked under limits that have changed
local limits_key = KEYS[7] -- hash: state of the queue's limits
local running_key = KEYS[8] -- hash: tenant → jobs that run
local now_given = ARGV[1] -- µs; empty: the server's time
local name = ARGV[2] -- the tenant, or empty

local now = time.now(now_given)
local q = queue.open({
  prefix = string.sub(queue_key, 1, -6), queue = queue_key, limits = limits_key, running = running_key,
}, now)
if not q then
  return { "unregistered" }
end
limits.open(q)
local rows = {}

local function add(scope, state)
  local rule = state.rule
  if state.holder then
    local used = state.holder[state.field]
    local left = math.max(0, rule.max - used)
    rows[#rows + 1] = { scope, rule.name, rule.kind, rule.max, 0, 0, 0, left, used, 0, 0 }
    return
  end
  local left = bucket.available(state)
  local opens = left > 0 and 0 or bucket.instant(state, 1) - now
  local used = math.min(rule.burst, math.ceil(math.max(0, state.tat - now) / state.interval))
  local full = math.max(0, state.tat - now, state.closed_until - now)
  rows[#rows + 1] =
    { scope, rule.name, rule.kind, rule.count, rule.window, rule.burst, state.jitter, left, used, opens, full }
end

for _, scope in ipairs({ "queue", "high", "normal", "low" }) do
  for _, state in ipairs(q.limits[scope]) do
    add(scope, state)
  end
end
if name ~= "" then
  for _, state in ipairs(limits.of_tenant(q, tenants.load(q, name))) do
    add("tenant", state)
  end
end
local active = 0
for _, key in ipairs({ ready_high_key, ready_normal_key, ready_low_key, parked_key, unparking_key }) do
  active = active + redis.call("ZCARD", key)
end
return { "limits", active, rows }
