-- The lanes of one tenant as they are, for the audit: every lane that could have work, what is in it, and whether it
-- takes turns as it should.
local queue = require "queue"
local places = require "places"
local actions = require "actions"
local auditing = require "auditing"
local time = require "time"
local finding = require "finding"
local elsewhere = require "elsewhere"

local lineup = {}

local FRONT_LOOKED_AT = 100 -- of jobs that came back to one lane, for their records: those that go next
local MARKS_LOOKED_AT = 500 -- cancelled jobs that no claim has met yet
local MOST_LANES = 1000 -- lanes of one tenant looked at in one script

local function add(lanes, level, token)
  local id = level .. ":" .. token
  if not lanes.by_id[id] then
    local lane = { level = level, token = token, id = id }
    lanes.by_id[id] = lane
    lanes.list[#lanes.list + 1] = lane
  end
  return lanes.by_id[id]
end

-- All lanes that anything knows of: the default ones, those with a number or a job they wait for, those of actions,
-- those in turns, and those the caller has met. nil when they are too many to be looked at in one script.
local function known_lanes(q, tenant, met, met_from, met_to)
  local lanes = { list = {}, by_id = {} }
  local hash_key = q.keys.prefix .. "lanes:" .. tenant.name
  local actions_key = q.keys.prefix .. "actions:" .. tenant.name
  if redis.call("HLEN", hash_key) + redis.call("ZCARD", actions_key) > MOST_LANES then
    return nil
  end
  for _, level in ipairs(queue.LEVELS) do
    add(lanes, level, "default")
    local line, ring_key = tenant.at[level], q.keys.prefix .. "ring:" .. level .. ":" .. tenant.name
    local ring = redis.call("LRANGE", ring_key, 0, MOST_LANES)
    lanes[level] = { ring_key = ring_key, turns = ring }
    if line.lane then
      table.insert(ring, 1, line.lane)
    end
    if #ring > MOST_LANES then
      return nil
    end
    for _, token in ipairs(ring) do
      add(lanes, level, token)
    end
  end
  local numbers = redis.call("HGETALL", hash_key)
  for i = 1, #numbers, 2 do
    local busy, level, token = string.match(numbers[i], "^(b?u?s?y?):?(%l+):(.*)$")
    local lane = add(lanes, level, token)
    lane[busy == "busy" and "busy" or "next"] = numbers[i + 1]
  end
  for _, name in ipairs(redis.call("ZRANGE", actions_key, 0, MOST_LANES)) do
    local action = actions.load(q, tenant.name, name)
    if action then
      add(lanes, action.rules.level, action.rules.lane).action = action
    end
  end
  for i = met_from, met_to do
    add(lanes, string.match(met[i], "^(%l+):(.*)$"))
  end
  return lanes
end

-- A job that came back and has no record any more is lost; its place goes.
local function look_at_front(q, tenant, lane)
  lane.front_key = q.keys.prefix .. "front:" .. lane.id .. ":" .. tenant.name
  local length = redis.call("LLEN", lane.front_key)
  local jobs = length > 0 and redis.call("LRANGE", lane.front_key, 0, FRONT_LOOKED_AT - 1) or {}
  for _, job in ipairs(jobs) do
    lane.has_back = lane.has_back or job == lane.busy
    -- Not the records themselves: they may be large.
    if redis.call("HEXISTS", q.keys.aside, job) == 0 then
      length = length - 1
      auditing.differs(q, "front.record", job, "a record", "none", function()
        redis.call("LREM", lane.front_key, 1, job)
        -- It has ended somehow; nobody can say more.
        queue.count(q, "canceled", 1)
      end)
    end
  end
  return length
end

-- The job that an ordered lane waits for runs, or is delayed with its record aside. One that does neither has ended
-- somehow, and one that is back in front is not waited for: nobody would ever free the lane.
local function check_busy(q, tenant, lane)
  local job = lane.busy
  if not job then
    return
  end
  local is_delayed = redis.call("HEXISTS", q.keys.aside, job) == 1 and not lane.has_back
  if is_delayed or not elsewhere.has_none(q, "running", job) then
    return
  end
  lane.busy = nil
  auditing.differs(q, "lane.busy", lane.id .. ":" .. tenant.name, "none", job, function()
    local hash_key = q.keys.prefix .. "lanes:" .. tenant.name
    redis.call("HDEL", hash_key, "busy:" .. lane.id)
    if lane.next and lane.length + lane.front == 0 then
      -- As when the last job of a lane ends (see named_lanes.lua).
      redis.call("HDEL", hash_key, lane.id)
      q.clock = math.max(q.clock, tonumber(lane.next))
    end
  end)
end

local function measure(q, tenant, lane)
  lane.key = q.keys.prefix .. "lane:" .. lane.id .. ":" .. tenant.name
  lane.length = redis.call("LLEN", lane.key)
  lane.front = look_at_front(q, tenant, lane)
  check_busy(q, tenant, lane)
  lane.has_work = lane.length + lane.front > 0 and not lane.busy
end

-- Fresh jobs are numbered: without a number nobody could take them.
local function check_number(q, tenant, lane)
  if lane.length == 0 or places.action_of(lane.token) then
    return
  end
  local line = tenant.at[lane.level]
  local is_default = lane.token == "default"
  if (is_default and line.sequence > 0) or (not is_default and lane.next) then
    return
  end
  auditing.differs(q, "lane.number", lane.id .. ":" .. tenant.name, "a number", "none", function()
    local number = queue.tick(q) + lane.length
    q.clock = number
    if is_default then
      line.sequence, line.changed = number, true
    else
      redis.call("HSET", q.keys.prefix .. "lanes:" .. tenant.name, lane.id, string.format("%d", number))
    end
  end)
end

-- Lanes with work take turns, each once. One that was dropped with its action stays until its turn comes.
local function check_turns(q, tenant, lanes, level)
  local line, standing, kept, seen = tenant.at[level], lanes[level], {}, {}
  local function differs(kind, lane)
    auditing.differs(q, kind, lane.id .. ":" .. tenant.name, "", "")
  end
  for _, token in ipairs(standing.turns) do
    local lane = lanes.by_id[level .. ":" .. token]
    if seen[token] then
      differs("turns.twice", lane)
    elseif lane.has_work or places.action_of(token) then
      kept[#kept + 1], seen[token] = token, true
    else
      differs("turns.empty", lane)
    end
  end
  for _, lane in ipairs(lanes.list) do
    if lane.level == level and lane.has_work and not seen[lane.token] then
      differs("turns.missing", lane)
      kept[#kept + 1], seen[lane.token] = lane.token, true
    end
  end
  if line.lanes ~= #kept then
    auditing.differs(q, "turns.count", level .. ":" .. tenant.name, #kept, line.lanes)
  elseif line.lane ~= kept[1] then
    auditing.differs(q, "turns.current", level .. ":" .. tenant.name, kept[1] or "none", line.lane or "none")
  elseif #kept == #standing.turns then
    return
  end
  q.audit.repairs[#q.audit.repairs + 1] = function()
    line.lane, line.lanes, line.changed = kept[1], #kept, true
    redis.call("DEL", standing.ring_key)
    if #kept > 1 then
      redis.call("RPUSH", standing.ring_key, unpack(kept, 2))
    end
  end
  -- What is asked next, as it will be.
  line.expected_lanes = #kept
end

-- What waits of an action is what stands in its lane and is not cancelled. Where jobs of it are delayed or run, they
-- are counted with all others (see census.lua).
local function check_action(q, lane)
  local action = lane.action
  if not action or actions.is_over(action) then
    return
  end
  local subject = action.tenant .. ":" .. action.name
  local waiting = lane.length + lane.front - action.marks
  if action.waiting ~= waiting then
    auditing.differs(q, "action.waiting", subject, waiting, action.waiting, function()
      action.waiting, action.changed = waiting, true
    end)
  end
  for _, field in ipairs({ "delayed", "running" }) do
    if action[field] ~= 0 and elsewhere.has_none(q, field, lane.token .. ":" .. action.tenant) then
      auditing.differs(q, "action." .. field, subject, 0, action[field], function()
        action[field], action.changed = 0, true
      end)
    end
  end
end

-- How many cancelled jobs stand in the lists of the tenant; nil: there are too many marks to look through.
function lineup.marks(q, tenant)
  local never = string.format("%d", time.NEVER)
  local marked = redis.call("ZRANGEBYSCORE", q.keys.canceled, never, never, "LIMIT", 0, MARKS_LOOKED_AT)
  if #marked == MARKS_LOOKED_AT then
    return nil
  end
  local marks = 0
  for _, job in ipairs(marked) do
    local _, _, _, name = places.parse(job)
    if name == tenant.name and finding.find(q, job, false, "-inf").state == "canceled" then
      marks = marks + 1
    end
  end
  for _, action in ipairs(q.actions and q.actions.list or {}) do
    marks = marks + (action.tenant == tenant.name and action.marks or 0)
  end
  return marks
end

-- Answers how many jobs stand in its lists, how many of them came back, and in how many lanes; nil: in too many.
function lineup.check(q, tenant, met, met_from, met_to)
  local lanes = known_lanes(q, tenant, met, met_from, met_to)
  if not lanes then
    return nil
  end
  local listed, fronts = 0, 0
  for _, lane in ipairs(lanes.list) do
    measure(q, tenant, lane)
    check_number(q, tenant, lane)
    check_action(q, lane)
    listed, fronts = listed + lane.length + lane.front, fronts + lane.front
  end
  for _, level in ipairs(queue.LEVELS) do
    check_turns(q, tenant, lanes, level)
  end
  return listed, fronts, #lanes.list
end

return lineup
