-- What becomes of a job that did not simply succeed: another try later, a dead letter, the front of its lane again.
local queue = require "queue"
local tenants = require "tenants"
local places = require "places"
local pace = require "pace"
local record = require "record"
local moves = require "moves"
local running = require "running"
local faults = require "faults"
local limits = require "limits"
local standing = require "standing"
local throttling = require "throttling"
local congestion = require "congestion"
local actions = require "actions"
local results = require "results"

local outcomes = {}

local COUNTED_AS = {
  retry = "retried", throttled = "throttled", returned = "returned", released = "released", unknown = "unknown_type",
}

-- Permits of a job that was never started go back to its limits.
local function refund(q, tenant, level, cost, fence, is_stale, members)
  if q.limits then
    limits.refund(q, tenant, level, cost, tonumber(fence), is_stale, members)
  end
  -- It may have been parked because of this very permit: its limits are asked again.
  standing.unpark(q, tenant)
end

-- Until the instant that its outcome gives; the reason goes into its history.
local function come_again(q, tenant, job, outcome, delay, detail, text)
  local attempts, stalls, throttles, unknown_since, reason, error = record.history(text)
  local since = math.floor(q.now / 1000)
  if outcome == "retry" then
    attempts, reason, error = attempts + 1, "retry", detail
    moves.tell(q, "job.failed", job, faults.short(detail))
  elseif outcome == "throttled" then
    throttles, reason = throttles + 1, "upstream"
    if delay < 0 then
      delay = congestion.back_off(q, tenant)
    end
    throttling.note(q, tenant)
    pace.open(tenant).backoff = math.floor(delay / 1000)
  else
    since = reason == "unknown-type" and unknown_since > 0 and unknown_since or since
    reason = "unknown-type"
  end
  text = record.with_history(text, attempts, stalls, throttles, since, reason, error)
  moves.postpone(q, tenant, job, text, q.now + delay)
end

-- Counts the run it died of as what it was: where no worker knew its type or could read it, there was none.
local function bury(q, job, why, error, text)
  local attempts, stalls, throttles = record.history(text)
  if why == "failed" or why == "discarded" then
    attempts = attempts + 1
  elseif why == "throttled" then
    throttles = throttles + 1
  end
  moves.bury(q, job, record.with_history(text, attempts, stalls, throttles, 0, why, error), why)
end

-- The action of a job, nil where it is of none, and whether that is over.
local function action_of(q, name, lane, sequence)
  if not places.action_of(lane) then
    return nil, false
  end
  local action = actions.of_lane(q, name, lane, sequence)
  return action, actions.is_over(action)
end

-- Of a job that has ended by its worker's word: what an action counts and keeps of it.
local function account(q, action, sequence, told)
  local measures, result = string.match(told, "^([^\n]*)\n(.*)$")
  if measures then
    results.measure(action, measures)
    results.keep(q, action, sequence, result)
  end
end

-- `delay` in µs (-1 where the upstream did not say how long), `detail` (an error; for a dead letter its reason and a
-- comma before it) and `told` (for an action: measures, line break, result) are the worker's. `held` is what the claim
-- holds under the job.
function outcomes.apply(q, fence, job, stood_on, outcome, delay, detail, held, told)
  local level, lane, sequence, name = places.parse(job)
  local tenant = tenants.load(q, name)
  local text, _, members = record.of_claimed(held)
  local cost = record.cost(text)
  running.ends(q, name, stood_on, 1, cost, members)
  local action, is_action_over = action_of(q, name, lane, sequence)
  if outcome == "succeeded" then
    queue.count(q, "succeeded", 1)
    moves.unmark(q, job)
    moves.ended(q, tenant, level, lane, job)
    if action then
      actions.finish(q, action, "succeeded", 1)
      account(q, action, sequence, told)
    end
    return
  end
  if outcome == "returned" or outcome == "unknown" then
    -- Neither was started. A released one was: its call may have been made, so its permits are spent.
    refund(q, tenant, stood_on, cost, fence, outcome == "returned", members)
  end
  if outcome ~= "dead" then
    queue.count(q, COUNTED_AS[outcome], 1)
  end
  local became, why, error
  if moves.end_canceled(q, tenant, level, lane, job, is_action_over) then
    became = "canceled"
  elseif outcome == "dead" then
    why, error = string.match(detail, "^([^,]*),(.*)$")
    bury(q, job, why, error, text)
    if why == "throttled" then
      throttling.note(q, tenant)
    end
    moves.ended(q, tenant, level, lane, job)
    became = "failed"
  elseif outcome == "returned" or outcome == "released" then
    moves.give_back(q, tenant, level, lane, sequence, job, text)
    became = "waiting"
  else
    come_again(q, tenant, job, outcome, delay, detail, text)
    became = "delayed"
  end
  pace.discount(tenant, became)
  if action then
    actions.come_back(q, action, job, became, why, error)
    if became == "failed" then
      account(q, action, sequence, told)
    end
  end
end

return outcomes
