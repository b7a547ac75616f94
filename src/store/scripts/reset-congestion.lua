#!lua flags=allow-oom
-- Starts the congestion statistics of a tenant over. Replies {"reset"}, {"unknown"} for a tenant that has none, or
-- {"unregistered"}.
local time = require "time"
local queue = require "queue"
local congestion = require "congestion"
local tenants = require "tenants"
local queue_key = KEYS[1] -- hash: the queue's state
local running_key = KEYS[2] -- hash: tenant → jobs that run
local now_given = ARGV[1] -- µs; empty: the server's time
local name = ARGV[2] -- the tenant

local q = queue.open({
  prefix = string.sub(queue_key, 1, -6), queue = queue_key, running = running_key,
}, time.now(now_given))
if not q then
  return { "unregistered" }
end
local tenant = tenants.load(q, name)
if not tenant.stored_state then
  return { "unknown" }
end
congestion.reset(tenant, tenants.running(q, tenant))
tenants.save(q)
return { "reset" }
