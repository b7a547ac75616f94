#!lua flags=allow-oom
-- Looks whether what the queue knows of all its tenants is the sum of them: jobs that wait, and the weights of those in
-- line and of those parked. All at one moment, so that it is exact however busy the queue is; where more tenants have
-- work than can be looked at in a few milliseconds, it is not looked at.
-- Replies {"audited", quiet, differences}: for how many µs nobody has claimed anything; each difference {kind, subject,
-- expected, found}. {"skipped", quiet, what there is too much of}, or {"unregistered"}.
local time = require "time"
local queue = require "queue"
local places = require "places"
local auditing = require "auditing"
local queue_key = KEYS[1] -- hash: the queue's state
local ready_high_key = KEYS[2] -- zset: tenant → score
local ready_normal_key = KEYS[3] -- zset: tenant → score
local ready_low_key = KEYS[4] -- zset: tenant → score
local parked_key = KEYS[5] -- zset: tenant → instant
local unparking_key = KEYS[6] -- zset: tenants parked under limits that have changed
local paused_key = KEYS[7] -- zset: tenant → paused since
local running_key = KEYS[8] -- hash: tenant → jobs that run
local delayed_key = KEYS[9] -- zset: job → instant
local events_key = KEYS[10] -- stream: what happened
local now_given = ARGV[1] -- µs; empty: the server's time
local repairs = tonumber(ARGV[2]) -- 1: put right what differs, 0: only look

local MOST = 1500 -- tenants, or places of them, that can be looked at within a few milliseconds

local q = queue.open({
  prefix = string.sub(queue_key, 1, -6), queue = queue_key, events = events_key,
}, time.now(now_given))
if not q then
  return { "unregistered" }
end
-- Every tenant with waiting jobs: in line, parked, paused, or with nothing but ordered lanes that wait for a job that
-- runs or is delayed.
local ready_keys = { high = ready_high_key, normal = ready_normal_key, low = ready_low_key }
local sets = { ready_high_key, ready_normal_key, ready_low_key, parked_key, unparking_key, paused_key }
local size = redis.call("HLEN", running_key) + redis.call("ZCARD", delayed_key)
for _, key in ipairs(sets) do
  size = size + redis.call("ZCARD", key)
end
if size > MOST then
  return { "skipped", auditing.quiet(q), "tenants" }
end
auditing.open(q, repairs == 1)
local waiting, parked, weight_of = 0, 0, {}

local function look_at(name)
  if weight_of[name] then
    return
  end
  local found = redis.call("HMGET", q.keys.prefix .. "tenant:" .. name, "state", "weight", "parked")
  local weight = math.floor(tonumber(found[2] or 1) * 1000 + 0.5)
  weight_of[name] = weight
  if found[1] then
    waiting = waiting + cmsgpack.unpack(found[1])
  end
  if found[3] then
    parked = parked + weight
  end
end

for _, key in ipairs(sets) do
  for _, name in ipairs(redis.call("ZRANGE", key, 0, -1)) do
    look_at(name)
  end
end
for _, name in ipairs(redis.call("HKEYS", running_key)) do
  look_at(name)
end
for _, job in ipairs(redis.call("ZRANGE", delayed_key, 0, -1)) do
  local _, _, _, name = places.parse(job)
  look_at(name)
end
auditing.number(q, "queue.waiting", "", q, "waiting", waiting)
auditing.number(q, "queue.weights.parked", "", q, "weights_parked", parked)
for _, level in ipairs(queue.LEVELS) do
  local weights = 0
  for _, name in ipairs(redis.call("ZRANGE", ready_keys[level], 0, -1)) do
    weights = weights + weight_of[name]
  end
  auditing.number(q, "queue.weights." .. level, "", q.at[level], "weights", weights)
end

if auditing.mend(q) then
  queue.save(q)
end
return { "audited", auditing.quiet(q), q.audit.found }
