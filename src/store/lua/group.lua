-- Limits shared by the queues of a group, and by code that has no queue. Their rules and what they counted live in one
-- hash of the group, so that a change is seen by every queue at once. Queues of a group wake each other: one that waits
-- for an event rather than for an instant has a mark with the limit.
local jitter = require "jitter"
local meters = require "meters"
local common_slots = require "common_slots"
local in_flight = require "in_flight"
local marks = require "marks"
local stranded = require "stranded"
local waking = require "waking"

local group = {}

-- Whom another limit keeps away for longer waits for that one.
local SOON = 1000000
local LEVELS = { "high", "normal", "low" }
-- Queues woken by one script for a limit.
local WOKEN = 16
local FIELDS = { "/rule", "", "/jitter", "/pushed", "/reserved", "/running", "/looked_at", "/waiting" }
local WIDTH = #FIELDS + 1
local FIRST = 4 -- behind those of the group itself
local NONE = {}

-- Of the queue in its group; empty for code that has none.
local function name_of(q)
  return string.match(q.keys.prefix or "", "}:(.*):$") or ""
end

-- A restart that one queue notices holds for the limits of all of them.
local function notice_server(g, q)
  if not q.is_server_met or g.server == q.server then
    return
  end
  if g.server then
    g.restarts, g.restarted_at = g.restarts + 1, q.now
  end
  g.server, g.server_changed = q.server, true
end

local function read(q, own)
  local fields = { "@server", "@restarts", "@lost" }
  for _, shared in ipairs(q.settings.shared) do
    for _, suffix in ipairs(FIELDS) do
      fields[#fields + 1] = shared.limit .. suffix
    end
    fields[#fields + 1] = shared.limit .. "/running/" .. own
  end
  return redis.call("HMGET", q.keys.group_limits, unpack(fields))
end

-- Takes what stranded queues have in flight off what is read of the limit, and answers their names; nil where nobody
-- has looked. Leases that ran out while the store was away are renewed as soon as it is back: a caller that may not
-- take back its own leases leaves those of others as well, and is told that there are some.
local function leave_out_stranded(q, g, shared, rule, values, at, takes_back)
  local sum, own_before = tonumber(values[at + 5] or 0), tonumber(values[at + 8] or 0)
  if not meters.may_hold(rule) or sum <= own_before or not stranded.is_due(values[at + 6], q.now) then
    return nil
  end
  local names, jobs = stranded.find(q, shared.limit, g.own)
  if #names > 0 and not takes_back then
    g.has_stranded = true
    return nil
  end
  values[at + 5] = math.max(own_before, sum - jobs)
  return names
end

local function open_one(q, g, shared, rule, values, at)
  local limit = shared.limit
  rule.name = shared.name
  local stored, known_text, pushed, reserved = values[at + 1], values[at + 2], values[at + 3], values[at + 4]
  local sum, own_before = tonumber(values[at + 5] or 0), tonumber(values[at + 8] or 0)
  local state
  if rule.kind == "concurrency" then
    local others = math.max(0, sum - own_before)
    state = common_slots.open(rule, q, shared.scopes, others, own_before, q.now)
    meters.close_pushed(state, limit .. "/pushed", pushed)
  else
    local known = meters.has_jitter(rule) and jitter.open(rule, known_text, q.now) or nil
    state = meters.open(g, rule, limit, stored, known, limit .. "/pushed", pushed)
    if rule.kind == "quota" then
      meters.land(state, sum == 0, reserved)
    end
  end
  if meters.may_hold(rule) then
    marks.open(state, values[at + 7], g.own)
  end
  state.is_shared, state.shared, state.in_flight, state.own_before = true, shared, sum, own_before
  return state
end

-- False when the store does not know one of them. `takes_back`: whether the caller takes back leases that ran out; nil:
-- it has nothing to do with leases.
function group.open(q, takes_back)
  local own = name_of(q)
  local values = read(q, own)
  local g = {
    now = q.now, own = own, server = values[1], restarts = 0, restarted_at = 0, server_changed = false, states = {},
    by_limit = {}, may_wait = false, has_quota = nil, woken = {},
    lost_at = tonumber(values[3] or ""), has_stranded = false,
    has_costs = true, -- for all that it knows
  }
  if values[2] then
    local restarts, at = string.match(values[2], "^(%d+):(%d+)$")
    g.restarts, g.restarted_at = tonumber(restarts), tonumber(at)
  end
  notice_server(g, q)
  local rules = {}
  for i = 1, #q.settings.shared do
    local packed = values[FIRST + (i - 1) * WIDTH]
    if not packed then
      return false
    end
    rules[i] = cmsgpack.unpack(packed)
    g.may_wait = g.may_wait or meters.may_hold(rules[i])
    g.has_quota = g.has_quota or rules[i].kind == "quota" or nil
  end
  for i, shared in ipairs(q.settings.shared) do
    local rule, at, left_out = rules[i], FIRST + (i - 1) * WIDTH, nil
    if takes_back ~= nil then
      left_out = leave_out_stranded(q, g, shared, rule, values, at, takes_back)
    end
    local state = open_one(q, g, shared, rule, values, at)
    state.left_out = left_out
    g.states[i], g.by_limit[shared.limit] = state, state
  end
  q.group = g
  return true
end

local function has_room(state)
  if state.rule.kind == "concurrency" then
    return state.closed_until <= state.now and state.meter.vacant(state) > 0
  end
  return state.rule.kind == "quota" and state.meter.available(state) > 0
end

local function find_sleeper(q, name)
  local prefix = string.match(q.keys.group_queues, "^(.*})") .. ":" .. name .. ":"
  local other = { keys = { prefix = prefix, idle = prefix .. "idle" }, now = q.now }
  local sleeper = waking.find(other)
  if sleeper then
    q.group.woken[#q.group.woken + 1] = { queue = other, client = sleeper }
  end
end

-- Whether another limit has nothing to grant to the level for a while, so that no slot and no answer would be of use.
local function is_kept_away(q, level)
  for _, scope in ipairs({ "queue", level }) do
    for _, state in ipairs(q.limits[scope]) do
      local is_event = state.is_shared and meters.may_hold(state.rule)
      if not is_event and state.meter.available(state) == 0 and state.meter.instant(state, 1) > q.now + SOON then
        return true
      end
    end
  end
  return false
end

-- Whether anybody in line would go on if the limit granted something.
local function is_of_use(q, state)
  for _, scope in ipairs(q.paused and NONE or state.shared.scopes) do
    for _, level in ipairs(scope == "queue" and LEVELS or { scope }) do
      local at = q.at[level]
      if at.weights > 0 and not at.paused and not is_kept_away(q, level) then
        return true
      end
    end
  end
  return false
end

-- Whether a claim waits for this limit. One whose hands are full does not, but leaves the mark that another process of
-- the queue may have made: nil.
local function waits_for(q, state)
  local is_event = state.rule.kind == "concurrency" or state.meter.is_asking(state)
  if not (is_event and state.meter.available(state) == 0 and is_of_use(q, state)) then
    return false
  end
  return q.claim.left > 0 or nil
end

-- Before anything is written: for which limits this queue waits now, if it is a claim, and whom to wake of the others
-- that do.
function group.close(q)
  local g = q.group
  if not g.may_wait then
    return
  end
  local is_woken = {}
  for _, state in ipairs(g.states) do
    if meters.may_hold(state.rule) then
      if q.claim then
        state.waits = waits_for(q, state)
      end
      for i = 1, has_room(state) and math.min(WOKEN, #state.waiting) or 0 do
        local name = state.waiting[i]
        if not is_woken[name] then
          is_woken[name] = true
          find_sleeper(q, name)
        end
      end
    end
  end
end

-- After its rules have changed every queue looks again, whether it waits or not.
function group.wake_all(q, most)
  for _, name in ipairs(redis.call("ZRANGE", q.keys.group_queues, 0, most - 1)) do
    find_sleeper(q, name)
  end
end

local function collect(q, g)
  local changes, count = {}, 0
  for _, state in ipairs(g.states) do
    local limit = state.shared.limit
    count = meters.collect(g, state, changes, count)
    if state.known and state.known.changed then
      changes[count + 1], changes[count + 2] = limit .. "/jitter", jitter.stored(state.known)
      count = count + 2
    end
    local own, left_out = in_flight.own(q, state.shared), state.left_out or NONE
    local marked = state.waits ~= nil and marks.stored(state, g.own, state.waits)
    if marked then
      changes[count + 1], changes[count + 2] = limit .. "/waiting", marked
      count = count + 2
    end
    if state.left_out then
      changes[count + 1], changes[count + 2] = limit .. "/looked_at", string.format("%d", q.now)
      count = count + 2
    end
    for _, name in ipairs(left_out) do
      changes[count + 1], changes[count + 2] = limit .. "/running/" .. name, "0"
      count = count + 2
    end
    if g.own ~= "" and (own ~= state.own_before or left_out[1]) then
      changes[count + 1] = limit .. "/running"
      changes[count + 2] = string.format("%d", math.max(0, state.in_flight - state.own_before) + own)
      changes[count + 3], changes[count + 4] = limit .. "/running/" .. g.own, string.format("%d", own)
      count = count + 4
    end
  end
  if g.server_changed then
    changes[count + 1], changes[count + 2] = "@server", g.server
    changes[count + 3], changes[count + 4] = "@restarts", string.format("%d:%d", g.restarts, g.restarted_at)
    count = count + 4
  end
  return changes, count
end

function group.wake(q)
  for _, woken in ipairs(q.group.woken) do
    waking.wake(woken.queue, woken.client)
  end
end

-- The queue gets the settings `after`. What it holds of limits that it shares no longer is free for the others: no
-- script of it counts under them from then on.
function group.open_leaving(q, after)
  local left = in_flight.left(q.settings, after)
  q.group = { woken = {}, left = left }
  if #left > 0 then
    group.wake_all(q, WOKEN)
  end
end

function group.save_leaving(q)
  for _, limit in ipairs(q.group.left) do
    in_flight.set(q.keys.group_limits, limit, name_of(q), 0)
  end
  group.wake(q)
end

function group.save(q)
  local g = q.group
  local changes, count = collect(q, g)
  if count > 0 then
    redis.call("HSET", q.keys.group_limits, unpack(changes, 1, count))
  end
  group.wake(q)
end

return group
