-- Waking without polling: an idle client blocks on a list of its own. Whoever makes work claimable wakes one of them;
-- that one wakes the next if it cannot take everything. One client holds the alarm for the next known instant.
local waking = {}

local TOKEN_KEPT_MS = 60000
-- How long after its instant an alarm is still taken as held, in case its holder is a little late.
local ALARM_SLACK_MS = 100

-- An idle client to wake, read before the first write; nil when nobody is idle.
function waking.find(q)
  local found = redis.call("ZREVRANGE", q.keys.idle, 0, 0, "WITHSCORES")
  if not found[1] or tonumber(found[2]) <= q.now then
    return nil
  end
  redis.call("EXISTS", q.keys.prefix .. "wake:" .. found[1])
  return found[1]
end

function waking.tell(q, client, what)
  local key = q.keys.prefix .. "wake:" .. client
  redis.call("RPUSH", key, what)
  redis.call("PEXPIRE", key, TOKEN_KEPT_MS)
end

function waking.wake(q, client)
  redis.call("ZREM", q.keys.idle, client)
  waking.tell(q, client, "work")
end

-- The instant of the alarm held now and its holder; nil when nobody holds one.
function waking.alarm(q)
  local found = redis.call("GET", q.keys.alarm)
  if not found then
    return nil
  end
  local instant, holder = string.match(found, "^(%d+):(.*)$")
  return tonumber(instant), holder
end

function waking.set_alarm(q, client, instant)
  local ms = math.max(1, math.ceil((instant - q.now) / 1000)) + ALARM_SLACK_MS
  redis.call("SET", q.keys.alarm, string.format("%.0f:%s", instant, client), "PX", ms)
end

return waking
