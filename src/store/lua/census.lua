-- A census of jobs that stand in no lane, for the audit: how many run or are delayed, by tenant and by action. All at
-- one moment, so that it is exact; what is too much for one script is not counted.
local places = require "places"
local actions = require "actions"
local auditing = require "auditing"

local census = {}

local MOST_ACTIONS = 300 -- read in one script

local function counts_of(q, action)
  local counts = q.census.actions[action.key]
  if not counts then
    counts = { action = action, jobs = 0 }
    q.census.actions[action.key] = counts
  end
  return counts
end

-- nil for a job of no action, or of one that is forgotten. The action itself is the second answer.
function census.of_action(q, name, lane, sequence)
  local action = actions.of_lane(q, name, lane, sequence)
  if not action then
    return nil, nil
  elseif not action.is_gone then
    return counts_of(q, action), action
  end
  -- A later one of that name may have no job at all.
  local later = actions.load(q, name, places.action_of(lane))
  if later then
    counts_of(q, later)
  end
  return nil, action
end

-- `field` is what is counted of actions: running or delayed.
function census.open(q, field)
  q.census = { field = field, tenants = {}, all = 0, actions = {}, names = {} }
end

function census.know(q, name)
  local c = q.census
  if not c.tenants[name] then
    c.tenants[name] = 0
    c.names[#c.names + 1] = name
  end
end

function census.count(q, name)
  census.know(q, name)
  q.census.tenants[name], q.census.all = q.census.tenants[name] + 1, q.census.all + 1
end

function census.is_too_much(q)
  return q.actions ~= nil and #q.actions.list > MOST_ACTIONS
end

-- Of each action. What has ended counts its jobs no longer.
function census.compare_actions(q)
  local field = q.census.field
  for _, counts in pairs(q.census.actions) do
    local action = counts.action
    if not actions.is_over(action) and action[field] ~= counts.jobs then
      local subject = action.tenant .. ":" .. action.name
      auditing.differs(q, "action." .. field, subject, counts.jobs, action[field], function()
        action[field], action.changed = counts.jobs, true
      end)
    end
  end
end

function census.save(q)
  if q.actions then
    actions.save(q)
  end
end

return census
