#!lua flags=allow-oom
-- Keeps a process on the lists of the idle of several queues, in one call: what a claim that finds nothing would do for
-- each of them. A queue with anything to claim or to do is left as it is.
-- Replies for each queue {"idle", wait, alarm}, as finish-and-claim does: `wait` is the time in µs until a claim can
-- bring anything (-1: unknown), `alarm` 1 if the caller is to claim then; or {"claim"}.
local time = require "time"
local queue = require "queue"
local waking = require "waking"
local queue_key = KEYS[1] -- hash: the state of the first queue
local now_given = ARGV[1] -- µs; empty: the server's time
local server = ARGV[2] -- id of the server the client is connected to
local queues, queues_from = ARGV, 3 -- list: client, levels it serves and µs for which it waits; then for each other
-- queue the key of its state and these three.

local now = time.now(now_given)

-- The first instant at which something is due, also one that is over.
local function first_instant(prefix)
  local instant = time.NEVER
  for _, part in ipairs({ "leases", "delayed", "parked", "duties" }) do
    local first = redis.call("ZRANGE", prefix .. part, 0, 0, "WITHSCORES")
    instant = math.min(instant, tonumber(first[2] or time.NEVER))
  end
  return instant
end

-- Where jobs wait there is always something to find: a turn, a limit that has opened, congestion to record.
local function is_quiet(q)
  local in_line = q.at.high.weights + q.at.normal.weights + q.at.low.weights
  return q.server == server and q.waiting == 0 and in_line == 0 and
    redis.call("EXISTS", q.keys.prefix .. "unparking") == 0
end

-- nil where a claim is due; nothing is written yet.
local function rest_in(key, client, levels, idle_for)
  local prefix = string.sub(key, 1, -6)
  local q = queue.open({ prefix = prefix, queue = key, idle = prefix .. "idle", alarm = prefix .. "alarm" }, now)
  local instant = q and is_quiet(q) and first_instant(prefix)
  if not instant or instant <= now then
    return nil
  end
  redis.call("EXISTS", q.keys.idle)
  local rest = { q = q, name = waking.name_of(client, levels), until_us = now + idle_for, instant = instant }
  rest.holds_alarm = instant < time.NEVER and waking.holds_alarm(q, rest.name, instant)
  return rest
end

local function save(rest)
  local idle_key = rest.q.keys.idle
  redis.call("ZREMRANGEBYSCORE", idle_key, "-inf", now)
  redis.call("ZADD", idle_key, rest.until_us, rest.name)
  if rest.holds_alarm then
    waking.set_alarm(rest.q, rest.name, rest.instant)
  end
end

local rests, count, at, key = {}, 0, queues_from, queue_key
while key do
  count = count + 1
  rests[count] = rest_in(key, queues[at], queues[at + 1], tonumber(queues[at + 2]))
  key, at = queues[at + 3], at + 4
end

local reply = {}
for i = 1, count do
  local rest = rests[i]
  if rest then
    save(rest)
    reply[i] = { "idle", rest.instant < time.NEVER and rest.instant - now or -1, rest.holds_alarm and 1 or 0 }
  else
    reply[i] = { "claim" }
  end
end
return reply
