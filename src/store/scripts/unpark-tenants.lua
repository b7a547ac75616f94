#!lua flags=allow-oom
-- Puts all parked tenants back in line, in bounded steps: the first by this script, the others by the claims that
-- follow. Their limits are asked again with their turns. Replies {"unparked", tenants}, {"again", tenants} if an
-- earlier call is still being carried out (call again), or {"unregistered"}.
local time = require "time"
local queue = require "queue"
local opening = require "opening"
local tenants = require "tenants"
local lifting = require "lifting"
local queue_key = KEYS[1] -- hash: the queue's state
local ready_high_key = KEYS[2] -- zset: tenant → score
local ready_normal_key = KEYS[3] -- zset: tenant → score
local ready_low_key = KEYS[4] -- zset: tenant → score
local since_high_key = KEYS[5] -- zset: tenant → able to run since
local since_normal_key = KEYS[6] -- zset: tenant → able to run since
local since_low_key = KEYS[7] -- zset: tenant → able to run since
local parked_key = KEYS[8] -- zset: tenant → instant
local unparking_key = KEYS[9] -- zset: tenants parked under limits that have changed
local idle_key = KEYS[10] -- zset: client → until when it is known to wait
local running_key = KEYS[11] -- hash: tenant → jobs that run
local now_given = ARGV[1] -- µs; empty: the server's time

local q = opening.open(
  time.now(now_given), queue_key, { ready_high_key, ready_normal_key, ready_low_key },
  { since_high_key, since_normal_key, since_low_key }, parked_key, unparking_key,
  { idle = idle_key, running = running_key }
)
if not q then
  return { "unregistered" }
end
local lift = lifting.open(q)

tenants.save(q)
queue.save(q)
if not lifting.save(q, lift) then
  return { "again", lift.earlier }
end
return { "unparked", lift.earlier + lift.parked }
