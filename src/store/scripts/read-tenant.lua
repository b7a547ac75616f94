#!lua flags=no-writes
-- How one tenant stands. Replies {"tenant", state, parked by, parked until, weight, base, level override, waiting,
-- delayed, running, longest wait, entitled, received} with the last two by level (high, normal, low), times in µs and
-- shares in millionths of a job; or {"unregistered"}.
local time = require "time"
local queue = require "queue"
local tenants = require "tenants"
local queue_key = KEYS[1] -- hash: the queue's state
local parked_key = KEYS[2] -- zset: tenant → instant
local running_key = KEYS[3] -- hash: tenant → jobs that run
local now_given = ARGV[1] -- µs; empty: the server's time
local name = ARGV[2] -- the tenant

local prefix = string.sub(queue_key, 1, -6)
local q = queue.open({ prefix = prefix, queue = queue_key, running = running_key }, time.now(now_given))
if not q then
  return { "unregistered" }
end
local tenant = tenants.load(q, name)
local fields = tenant.fields
local entitled, received = {}, {}
for i, level in ipairs(queue.LEVELS) do
  local stand = tenant.at[level]
  local since = stand.present and q.at[level].virtual - stand.virtual or 0
  entitled[i] = stand.entitled + math.floor(tenant.weight * since)
  received[i] = stand.received
end
local longest = math.max(tenant.at.high.longest, tenant.at.normal.longest, tenant.at.low.longest)
local has_work = tenant.at.high.lanes + tenant.at.normal.lanes + tenant.at.low.lanes > 0
local state = fields.paused and "paused" or fields.parked and "parked" or has_work and "ready" or "idle"
return {
  "tenant", state, fields.parked or "", redis.call("ZSCORE", parked_key, name) or "", fields.weight or "1",
  fields.base or "0", fields.override or "", tenant.waiting, tenant.delayed, tenants.running(q, tenant), longest,
  entitled, received,
}
