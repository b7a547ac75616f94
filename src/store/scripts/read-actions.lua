#!lua flags=no-writes
-- Actions as they stand. Replies {"actions", now, action, …}: each is {name, state, numbers by name, rules as JSON,
-- aggregate, error, statistics, pace}, or an empty list where there is none; aggregate, error and statistics only if
-- they were asked for. The pace is that of its tenant, {waiting, lanes that take turns, speed, backoff, base}, speed
-- and µs as text; empty when the action is over or nothing of the tenant waits.
local time = require "time"
local queue = require "queue"
local actions = require "actions"
local congestion = require "congestion"
local limits = require "limits"
local tenants = require "tenants"
local queue_key = KEYS[1] -- hash: the queue's state
local ready_high_key = KEYS[2] -- zset: tenant → score
local ready_normal_key = KEYS[3] -- zset: tenant → score
local ready_low_key = KEYS[4] -- zset: tenant → score
local parked_key = KEYS[5] -- zset: tenant → instant
local unparking_key = KEYS[6] -- zset: tenants parked under limits that have changed
local running_key = KEYS[7] -- hash: tenant → jobs that run
local limits_key = KEYS[8] -- hash: state of the queue's limits
local group_limits_key = KEYS[9] -- hash: limits shared with other queues
local group_queues_key = KEYS[10] -- zset: queues of the group
local now_given = ARGV[1] -- µs; empty: the server's time
local with_statistics = tonumber(ARGV[2]) -- 1: what their jobs took, how they failed, and the aggregate
local names, names_from = ARGV, 3 -- list: tenant:name

local function pace_of(q, action)
  local tenant = tenants.load(q, action.tenant)
  if actions.is_over(action) or tenant.waiting == 0 then
    return {}
  end
  local at, speed = tenant.at, congestion.speed(q, tenant)
  return {
    tenant.waiting, at.high.lanes + at.normal.lanes + at.low.lanes, string.format("%.2f", speed),
    string.format("%.0f", congestion.backoff(q, tenant.waiting, speed)),
    string.format("%.0f", congestion.setting(q, "base_backoff")),
  }
end

-- Numbers of sixteen digits travel as text.
local function described(q, tenant, name)
  local action = actions.load(q, tenant, name)
  if not action then
    return {}
  end
  local numbers = {}
  for _, field in ipairs(actions.NUMBERS) do
    numbers[#numbers + 1] = field
    numbers[#numbers + 1] = string.format("%.0f", action[field])
  end
  -- An aggregate may be large: only whoever wants to know what became of the action reads it.
  local kept = with_statistics == 1 and redis.call("HMGET", action.key, "aggregate", "error") or {}
  return {
    tenant .. ":" .. name, action.state, numbers, cjson.encode(action.rules), kept[1] or "", kept[2] or "",
    with_statistics == 1 and redis.call("HGETALL", q.keys.prefix .. "stats:" .. tenant .. ":" .. name) or {},
    pace_of(q, action),
  }
end

local q = queue.open({
  prefix = string.sub(queue_key, 1, -6), queue = queue_key, running = running_key, limits = limits_key,
  group_limits = group_limits_key, group_queues = group_queues_key, parked = parked_key, unparking = unparking_key,
  ready = { high = ready_high_key, normal = ready_normal_key, low = ready_low_key },
}, time.now(now_given))
if not q or not limits.open(q) then
  return { "unregistered" }
end
local reply = { "actions", string.format("%d", q.now) }
for i = names_from, #names do
  local tenant, name = string.match(names[i], "^([^:]*):(.*)$")
  reply[#reply + 1] = described(q, tenant, name)
end
return reply
