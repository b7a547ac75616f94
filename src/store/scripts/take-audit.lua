#!lua flags=allow-oom
-- Takes the slow audit of the queue for a while, or keeps it: one process at a time goes on with it, from where the
-- last one says that it was. Saves work only: each step of an audit is right by itself, whoever takes it. With each
-- step dead letters past their time go, where no other job dies that would take them away.
-- Replies {"taken", quiet, position}: for how many µs nobody has claimed anything, and where to go on (empty: a new
-- round begins); {"wait", µs}: another has it, or the next round is not due; or {"unregistered"}.
local time = require "time"
local queue = require "queue"
local auditing = require "auditing"
local expiring = require "expiring"
local queue_key = KEYS[1] -- hash: the queue's state
local audit_key = KEYS[2] -- hash: who audits the queue, and how far that is
local dead_key = KEYS[3] -- zset: job → when it became a dead letter
local dead_jobs_key = KEYS[4] -- hash: job → reason and record
local now_given = ARGV[1] -- µs; empty: the server's time
local client = ARGV[2] -- who asks
local lease = tonumber(ARGV[3]) -- µs
local every = tonumber(ARGV[4]) -- µs from the start of one round to that of the next, at least
local position = ARGV[5] -- how far it is; "end": the round is over; empty: the client does not know

-- ms. Where nobody works for the queue any more, nothing of it is to stay for this.
local KEPT = 86400000
local TRIMMED_AT_ONCE = 500 -- dead letters

local q = queue.open({ queue = queue_key, dead = dead_key, dead_jobs = dead_jobs_key }, time.now(now_given))
if not q then
  return { "unregistered" }
end
local holder, held_until, since, stored, due =
  unpack(redis.call("HMGET", audit_key, "holder", "until", "since", "position", "due"))
local is_holder = holder == client
if not is_holder then
  -- A clock that was put back must not keep everybody waiting.
  local wait = math.max(math.min(tonumber(held_until or 0) - q.now, lease), math.min(tonumber(due or 0) - q.now, every))
  if wait > 0 then
    return { "wait", string.format("%d", wait) }
  end
end
if position == "end" and is_holder then
  local next_due = math.max(q.now, tonumber(since) + every)
  redis.call("HDEL", audit_key, "holder", "until", "since", "position")
  redis.call("HSET", audit_key, "due", string.format("%d", next_due))
  redis.call("PEXPIRE", audit_key, KEPT)
  queue.count(q, "audits", 1)
  queue.save(q)
  return { "wait", string.format("%d", next_due - q.now) }
end
-- Somebody else has gone on meanwhile: what the client knew is of no use.
local at = is_holder and position ~= "" and position or stored or ""
redis.call(
  "HSET", audit_key, "holder", client, "until", string.format("%d", q.now + lease), "position", at,
  "since", since or string.format("%d", q.now)
)
redis.call("HDEL", audit_key, "due")
redis.call("PEXPIRE", audit_key, KEPT)
local expired = expiring.find(q, TRIMMED_AT_ONCE)
if #expired > 0 then
  expiring.forget(q, expired)
  queue.save(q)
end
return { "taken", auditing.quiet(q), at }
