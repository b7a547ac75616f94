#!lua flags=allow-oom
-- Looks whether the counts of delayed jobs are what they count: of each tenant and action that has any, and of the
-- queue; who has none is looked at in audit-tenants. All at one moment, so that it is exact however busy the queue is;
-- where more is delayed than can be looked at in a few milliseconds, it is not looked at.
-- Replies {"audited", quiet, differences}: for how many µs nobody has claimed anything; each difference {kind, subject,
-- expected, found}. {"skipped", quiet, what there is too much of}, or {"unregistered"}.
local time = require "time"
local queue = require "queue"
local places = require "places"
local actions = require "actions"
local tenants = require "tenants"
local auditing = require "auditing"
local census = require "census"
local queue_key = KEYS[1] -- hash: the queue's state
local delayed_key = KEYS[2] -- zset: job → instant
local events_key = KEYS[3] -- stream: what happened
local now_given = ARGV[1] -- µs; empty: the server's time
local repairs = tonumber(ARGV[2]) -- 1: put right what differs, 0: only look

local NOTHING = cmsgpack.pack(0, 0)
local MOST = 1500 -- can be looked at within a few milliseconds

local q = queue.open({
  prefix = string.sub(queue_key, 1, -6), queue = queue_key, events = events_key,
}, time.now(now_given))
if not q then
  return { "unregistered" }
end
if redis.call("ZCARD", delayed_key) > MOST then
  return { "skipped", auditing.quiet(q), "delayed" }
end
auditing.open(q, repairs == 1)
census.open(q, "delayed")
for _, job in ipairs(redis.call("ZRANGE", delayed_key, 0, -1)) do
  local _, lane, sequence, name = places.parse(job)
  local counts, action = census.of_action(q, name, lane, sequence)
  census.know(q, name)
  -- What an action has dropped with its end is counted no longer, and goes when it is due.
  if not (action and actions.is_over(action)) then
    census.count(q, name)
    if counts then
      counts.jobs = counts.jobs + 1
    end
  end
end
if census.is_too_much(q) then
  return { "skipped", auditing.quiet(q), "actions" }
end

for _, name in ipairs(q.census.names) do
  local state = redis.call("HGET", q.keys.prefix .. "tenant:" .. name, "state")
  local _, delayed = cmsgpack.unpack(state or NOTHING)
  if delayed ~= q.census.tenants[name] then
    auditing.number(q, "tenant.delayed", name, tenants.load(q, name), "delayed", q.census.tenants[name])
  end
end
census.compare_actions(q)
auditing.number(q, "queue.delayed", "", q, "delayed", q.census.all)

if auditing.mend(q) then
  census.save(q)
  tenants.save(q)
  queue.save(q)
end
return { "audited", auditing.quiet(q), q.audit.found }
