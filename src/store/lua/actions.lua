-- Bulk actions: jobs of one tenant, submitted together into a lane of their own. Every script that moves a job of such
-- a lane moves it between the action's counts as well, so that whoever ends the last job sees that it was the last. An
-- action is read once, changed in memory and written once, when the script has read all it needs.
local places = require "places"
local events = require "events"
local duties = require "duties"
local results = require "results"
local congestion = require "congestion"
local ids = require "ids"
local waking = require "waking"

local actions = {}

local pack = cmsgpack.pack

-- Jobs of the lane by where they are, the numbers of the lane, and the action's times (µs, 0 for never). `received`
-- counts what producers sent, known ids included. `marks` are cancelled jobs that still stand in the lane. `seen_at`
-- and `seen_done`, `before_at` and `before_done`: how many had ended at two moments some seconds apart, for the rate.
-- `dropped` is the first number of the list that was dropped when the action ended, 0 when it was empty.
local NUMBERS = {
  "sealed", "first", "next", "total", "waiting", "running", "delayed", "succeeded", "failed", "canceled", "received",
  "marks", "created", "started", "ended", "last_end", "attempts", "throttles", "errors", "notified", "seen_at",
  "seen_done", "before_at", "before_done", "dropped",
}

actions.NUMBERS = NUMBERS

local OVER = { COMPLETED = true, FAILED = true, CANCELED = true }
local RATE_STEP = 5000000 -- µs between the two moments of the rate: it covers the last five to ten seconds
local RESUMED_FOR = 500000 -- µs: how long what ends first after a standstill is taken to have run
local NOTIFY_EVERY = 100000 -- µs between two wake-ups of those who follow an action

function actions.key(q, tenant, name)
  return q.keys.prefix .. "action:" .. tenant .. ":" .. name
end

-- A new one, not stored yet. `rules`: type, level, lane, keep_results, fail_fast, max_failure_ratio, aggregates,
-- has_webhook, seal_timeout (µs).
function actions.create(q, tenant, name, rules)
  local action = { tenant = tenant, name = name, key = actions.key(q, tenant, name), rules = rules, state = "CREATED" }
  for _, field in ipairs(NUMBERS) do
    action[field] = 0
  end
  -- By the queue's clock, which moves along: jobs of this action have later numbers, those of an earlier one of that
  -- name have not, even if the server's time goes back meanwhile.
  action.created, action.changed = math.max(q.clock, q.now), true
  q.clock = math.max(q.clock, action.created - 1)
  actions.remember(q, action)
  return action
end

function actions.remember(q, action)
  q.actions = q.actions or { list = {}, by_key = {} }
  q.actions.by_key[action.key] = action
  q.actions.list[#q.actions.list + 1] = action
end

-- nil when there is none: it never was, or its record has expired.
function actions.load(q, tenant, name)
  local key = actions.key(q, tenant, name)
  local known = q.actions and q.actions.by_key[key]
  if known then
    return known
  end
  local found = redis.call("HMGET", key, "state", "rules", "watchers")
  if not found[1] then
    return nil
  end
  local action = {
    tenant = tenant, name = name, key = key, rules = cmsgpack.unpack(found[2]), watchers = found[3],
  }
  local values = { cmsgpack.unpack(found[1]) }
  action.state = values[1]
  for i, field in ipairs(NUMBERS) do
    action[field] = values[i + 1]
  end
  action.done_before = action.succeeded + action.failed + action.canceled
  actions.remember(q, action)
  return action
end

-- The action a lane belongs to; nil for any other lane. A job with a `sequence` from before the action was made is of
-- an earlier one of that name, which is forgotten.
function actions.of_lane(q, tenant, lane, sequence)
  local name = places.action_of(lane)
  if not name then
    return nil
  end
  local action = actions.load(q, tenant, name)
  if not action or (sequence and tonumber(sequence) < action.created) then
    -- It is forgotten: the jobs of the lane are as good as cancelled.
    return { state = "CANCELED", is_gone = true, rules = {} }
  end
  return action
end

-- It has ended: nothing of it may start, and what comes back is dropped.
function actions.is_over(action)
  return OVER[action.state] == true
end

-- Nothing may be added.
function actions.is_closed(action)
  return action.sealed == 1 or OVER[action.state] == true
end

function actions.transition(q, action, state)
  action.state, action.changed = state, true
  if OVER[state] then
    action.ended, action.has_ended = q.now, true
  end
  events.add(q, "action." .. string.lower(state), { "tenant", action.tenant, "action", action.name })
end

-- Jobs go from one count to another; nil where they come from outside.
function actions.move(action, from, to, count)
  if action.is_gone then
    return
  end
  if from then
    action[from] = action[from] - count
  end
  action[to] = action[to] + count
  action.changed = true
end

-- Jobs were added to those that wait or are delayed.
function actions.accept(action, to, count)
  action.total = action.total + count
  actions.move(action, nil, to, count)
end

-- A producer was heard of: it has sent so many jobs, known ids included. The action is sealed that much later.
function actions.receive(q, action, count)
  action.received, action.changed = action.received + count, true
  if action.rules.seal_timeout > 0 then
    duties.add(q, duties.name("seal", action), q.now + action.rules.seal_timeout)
  end
end

-- Jobs were claimed.
function actions.start(q, action, count)
  actions.move(action, "waiting", "running", count)
  action.has_started_jobs = true
  if action.started == 0 then
    action.started = q.now
  end
  if action.state == "CREATED" or action.state == "DISPATCHED" then
    actions.transition(q, action, "RUNNING")
  end
end

-- Marks of an action's jobs are its own, and go with it: those that no claim will meet need not be looked for.
local function marks_key(q, action)
  return q.keys.prefix .. "marks:" .. action.tenant .. ":" .. action.name
end

function actions.is_marked(q, action, sequence)
  return not action.is_gone and redis.call("SISMEMBER", marks_key(q, action), sequence) == 1
end

-- A job was cancelled while it waited or was delayed. A waiting one stays in its lane, marked, until a claim meets it.
function actions.cancel_one(action, from, sequence)
  actions.move(action, from, "canceled", 1)
  if from == "waiting" then
    action.marks, action.marked = action.marks + 1, sequence
  end
end

-- A claim has met a cancelled job in the lane: it is gone from there.
function actions.unmark(action)
  action.marks, action.changed = action.marks - 1, true
end

-- Jobs that ran have ended: as succeeded, failed or canceled.
function actions.finish(q, action, as, count)
  if action.is_gone then
    return
  end
  actions.move(action, "running", as, count)
  action.last_end = q.now
end

-- A job that ran did not succeed: it waits or is delayed again, or has ended as failed or canceled.
function actions.come_back(q, action, job, became, reason, error)
  if action.is_gone then
    return
  end
  if became == "waiting" or became == "delayed" then
    actions.move(action, "running", became, 1)
    return
  end
  actions.finish(q, action, became, 1)
  if became == "failed" then
    results.note_failure(q, action, job, reason, error)
  end
end

local function move_rate(q, action)
  local done = action.succeeded + action.failed + action.canceled
  if action.seen_at == 0 then
    action.seen_at, action.before_at = q.now, q.now
  elseif q.now - action.seen_at >= RATE_STEP then
    action.before_at, action.before_done = action.seen_at, action.seen_done
    if q.now - action.seen_at > 2 * RATE_STEP then
      -- It has stood still for a step at least. All of that, an hour of pause perhaps, is not its speed from now on,
      -- and what ends first began a moment ago.
      action.before_at, action.before_done = q.now - RESUMED_FOR, action.done_before
    end
    action.seen_at, action.seen_done = q.now, done
  end
end

-- Those who follow the action, at most ten times a second, and at its end.
local function find_watchers(q, action)
  if not action.watchers then
    return
  end
  local is_due = q.now - action.notified >= NOTIFY_EVERY or action.has_ended
  if not is_due then
    return
  end
  action.notified, action.told = q.now, {}
  for client, until_us in pairs(cmsgpack.unpack(action.watchers)) do
    if until_us > q.now then
      redis.call("EXISTS", q.keys.prefix .. "wake:" .. client)
      action.told[#action.told + 1] = client
    end
  end
  table.sort(action.told)
end

-- Lanes whose jobs were claimed in this script, and whose action keeps results.
function actions.lanes_kept(q)
  local kept = {}
  for _, action in ipairs(q.actions.list) do
    if action.has_started_jobs and action.rules.keep_results then
      kept[#kept + 1] = action.rules.lane .. ":" .. action.tenant
    end
  end
  return kept
end

-- The last reads, after the claim and before the first write.
function actions.close(q)
  for _, action in ipairs(q.actions and q.actions.list or {}) do
    if action.changed then
      move_rate(q, action)
      find_watchers(q, action)
      if action.durations or action.messages or action.results or action.has_ended then
        results.close(q, action)
      end
      if OVER[action.state] then
        redis.call("EXISTS", marks_key(q, action))
      end
      if action.has_ended then
        congestion.end_action(q, action)
      end
      if action.has_ended and action.rules.has_webhook then
        duties.add(q, duties.name("webhook", action), q.now)
      end
    end
  end
end

-- All keys of an action go as long after its end as the queue says; after what its last jobs left, if that is later.
local function expire(q, action)
  local keep_ms = math.ceil(q.settings.keep_actions / 1000)
  redis.call("PEXPIRE", action.key, keep_ms)
  redis.call("PEXPIRE", marks_key(q, action), keep_ms)
  results.expire(q, action, keep_ms)
end

local function packed(action)
  local values = {}
  for i, field in ipairs(NUMBERS) do
    values[i] = action[field]
  end
  return pack(action.state, unpack(values))
end

function actions.save(q)
  for _, action in ipairs(q.actions and q.actions.list or {}) do
    if action.changed then
      redis.call("HSET", action.key, "state", packed(action))
      if action.durations or action.messages or action.results then
        results.save(q, action)
      end
      if action.ids then
        ids.save(q, action.ids)
      end
      if action.marked then
        redis.call("SADD", marks_key(q, action), action.marked)
      end
      if action.has_ended or (OVER[action.state] and (action.durations or action.results)) then
        expire(q, action)
      end
      for _, client in ipairs(action.told or {}) do
        waking.tell(q, client, "action:" .. action.tenant .. ":" .. action.name)
      end
    end
  end
end

return actions
