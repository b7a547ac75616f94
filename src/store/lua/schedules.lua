-- Repeating jobs. A schedule is a hash of its own and stands in one sorted set by when it is to be looked at: at its
-- next tick, a little later if the queue had no room for that, never while it is paused. When the first of them is due
-- is one duty of the queue ("tick"), so that claims and alarms need not know of schedules.
local time = require "time"
local queue = require "queue"

local schedules = {}

local DUTY = "tick"
local FIELDS = { "definition", "due", "revision", "paused", "last", "ticks", "missed" }

-- nil when there is none. `due` is text: '' when it has no next tick.
function schedules.load(q, name)
  local key = q.keys.prefix .. "schedule:" .. name
  local values = redis.call("HMGET", key, unpack(FIELDS))
  if not values[1] then
    return nil
  end
  local schedule = { name = name, key = key }
  for i, field in ipairs(FIELDS) do
    schedule[field] = values[i] or ""
  end
  return schedule
end

-- As a client reads it.
function schedules.row(schedule)
  local row = { schedule.name }
  for _, field in ipairs(FIELDS) do
    row[#row + 1] = schedule[field]
  end
  return row
end

-- Told apart from every other state the schedule has had or one of its name had before it.
function schedules.new_revision(q)
  return string.format("%d", queue.tick(q))
end

function schedules.look_at(schedule)
  local is_waiting = schedule.paused == "" and schedule.due ~= ""
  return is_waiting and schedule.due or string.format("%d", time.NEVER)
end

-- The first that is to be looked at and when; nil when there is none.
function schedules.first(q)
  local found = redis.call("ZRANGE", q.keys.schedules, 0, 0, "WITHSCORES")
  local at = tonumber(found[2])
  return at and at < time.NEVER and at or nil
end

-- After the set was written: when somebody is to tick next. With a `lease` the caller goes on with what is due already,
-- and others leave it alone for that long. Answers under which fence, or nil and in how many µs something will be due
-- (-1: never).
function schedules.set_duty(q, lease)
  local at = schedules.first(q)
  if not at then
    redis.call("ZREM", q.keys.duties, DUTY)
    return nil, -1
  end
  local is_due = at <= q.now
  local score = string.format("%d", is_due and q.now + lease or at)
  redis.call("ZADD", q.keys.duties, score, DUTY)
  return is_due and score or nil, math.max(0, at - q.now)
end

-- To be taken by anybody, or by whoever has it under this fence.
function schedules.is_duty_due(q, fence)
  local at = redis.call("ZSCORE", q.keys.duties, DUTY)
  return at and (tonumber(at) <= q.now or at == fence)
end

return schedules
