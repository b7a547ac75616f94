-- How bulk actions end: completed when they are sealed and their last job has ended, failed by their policy, canceled.
local actions = require "actions"
local duties = require "duties"
local queue = require "queue"
local tenants = require "tenants"
local lanes = require "lanes"
local standing = require "standing"
local waking = require "waking"

local endings = {}

-- Nothing more is added. Whether that was all is judged with everything else.
function endings.seal(q, action)
  action.sealed, action.changed = 1, true
  if action.rules.seal_timeout > 0 then
    duties.drop(q, duties.name("seal", action))
  end
  if action.state == "CREATED" then
    actions.transition(q, action, "DISPATCHED")
  end
end

-- The lane goes with all that stands in it.
local function drop_lane(q, tenant, action)
  local lane = lanes.open(q, tenant, action.rules.level, action.rules.lane)
  if lane.length > 0 then
    action.dropped = lane.next - lane.length
  end
  lanes.drop(q, tenant, lane)
  tenant.marks, action.marks = tenant.marks - action.marks, 0
  standing.settle(q, tenant)
end

-- Ends an action while jobs of it wait or run. What waits is counted as canceled now: the lane's list goes as a whole,
-- delayed jobs are dropped when they are due, and the workers that may run others are told.
function endings.end_early(q, action, state)
  local tenant = tenants.load(q, action.tenant)
  local dropped = action.waiting + action.delayed
  tenant.waiting, q.waiting = tenant.waiting - action.waiting, q.waiting - action.waiting
  tenant.delayed, q.delayed = tenant.delayed - action.delayed, q.delayed - action.delayed
  queue.count(q, "canceled", dropped)
  action.canceled, action.waiting, action.delayed = action.canceled + dropped, 0, 0
  drop_lane(q, tenant, action)
  if action.running > 0 then
    waking.tell_holders(q, "cancel-action:" .. action.rules.lane .. ":" .. action.tenant)
  end
  -- What is still to be done for it would be done to another action of its name.
  if action.state == "AGGREGATING" then
    duties.drop(q, duties.name("aggregate", action))
  elseif action.sealed == 0 and action.rules.seal_timeout > 0 then
    duties.drop(q, duties.name("seal", action))
  end
  actions.transition(q, action, state)
end

local function has_failed(action)
  if action.failed == 0 then
    return false
  end
  local ratio = action.rules.max_failure_ratio
  return action.rules.fail_fast or (ratio ~= nil and action.sealed == 1 and action.failed > ratio * action.total)
end

-- Without an aggregate of its own, the counts and statistics that the transitions have kept are the aggregate.
local function complete(q, action)
  if action.marks > 0 then
    -- Only cancelled jobs stand in the lane, and nobody would know them when the action is forgotten.
    drop_lane(q, tenants.load(q, action.tenant), action)
  end
  actions.transition(q, action, "AGGREGATING")
  if action.rules.aggregates then
    duties.add(q, duties.name("aggregate", action), q.now)
  else
    actions.transition(q, action, "COMPLETED")
  end
end

local function judge(q, action)
  if action.state == "AGGREGATING" or actions.is_over(action) then
    return
  end
  if has_failed(action) then
    endings.end_early(q, action, "FAILED")
  elseif action.sealed == 1 and action.waiting + action.running + action.delayed == 0 then
    complete(q, action)
  end
end

-- Once all that ended or came back in this script is known, and before anything is claimed.
function endings.judge(q)
  for _, action in ipairs(q.actions.list) do
    if action.changed then
      judge(q, action)
    end
  end
end

return endings
