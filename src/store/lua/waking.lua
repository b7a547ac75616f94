-- Waking without polling: an idle client blocks on a list of its own. Whoever makes work claimable wakes one of them;
-- that one wakes the next if it cannot take everything. One client holds the alarm for the next known instant.
local time = require "time"

local waking = {}

local TOKEN_KEPT_MS = 60000
-- Leases looked through for their holders: there are about as many as there are claims in flight.
local HOLDERS = 2000
-- How long after its instant an alarm is still taken as held, in case its holder is a little late.
local ALARM_SLACK_MS = 100

-- An idle client to wake, read before the first write; nil when nobody is idle. Whoever asks because its own hands
-- are full is no help, though it may still be on the list: its alarm rang, and nobody has woken it.
function waking.find(q, asking)
  local found = redis.call("ZREVRANGE", q.keys.idle, 0, asking and 1 or 0, "WITHSCORES")
  local at = found[1] == asking and 3 or 1
  if not found[at] or tonumber(found[at + 1]) <= q.now then
    return nil
  end
  redis.call("EXISTS", q.keys.prefix .. "wake:" .. found[at])
  return found[at]
end

function waking.tell(q, client, what)
  local key = q.keys.prefix .. "wake:" .. client
  redis.call("RPUSH", key, what)
  redis.call("PEXPIRE", key, TOKEN_KEPT_MS)
end

-- Something that concerns whoever holds a job of the queue: told when the script writes, to every client with a lease.
function waking.tell_holders(q, what)
  local seen = {}
  q.told = q.told or {}
  for _, member in ipairs(redis.call("ZREVRANGE", q.keys.leases, 0, HOLDERS - 1)) do
    local client = string.match(member, "^%d+:(.*)$")
    if not seen[client] then
      seen[client] = true
      redis.call("EXISTS", q.keys.prefix .. "wake:" .. client)
      q.told[#q.told + 1] = { client = client, what = what }
    end
  end
end

function waking.save_told(q)
  for _, told in ipairs(q.told) do
    waking.tell(q, told.client, told.what)
  end
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
  instant = tonumber(instant)
  -- The key is gone by then, unless a test has moved the time.
  if instant + ALARM_SLACK_MS * 1000 < q.now then
    return nil
  end
  return instant, holder
end

function waking.set_alarm(q, client, instant)
  local ms = math.max(1, math.ceil((instant - q.now) / 1000)) + ALARM_SLACK_MS
  redis.call("SET", q.keys.alarm, string.format("%.0f:%s", instant, client), "PX", ms)
end

-- Of the parked, not those that this script itself put back in line: they are still in the set.
local function after(key, now, tenants)
  local at, found, tenant = 0
  repeat
    found = redis.call("ZRANGEBYSCORE", key, string.format("(%d", now), "+inf", "WITHSCORES", "LIMIT", at, 1)
    at, tenant = at + 1, tenants and tenants.by_name[found[1]]
  until not (tenant and tenant.parked_before)
  return found[2] and tonumber(found[2]) or time.NEVER
end

-- When a claim can next bring anything. What ran out or fell due in this very script is handled; the sets, and what
-- this script parked and postponed, say what comes next.
function waking.next_instant(q, leases_key)
  local instant = math.min(q.claim.wait_until, after(leases_key, q.now), after(q.keys.duties, q.now))
  if q.claim.is_closed then
    return instant
  end
  for _, tenant in ipairs(q.tenants and q.tenants.list or {}) do
    instant = math.min(instant, tenant.parked_until or instant)
  end
  for i = 1, q.delayed_at and #q.delayed_at or 0, 2 do
    instant = math.min(instant, q.delayed_at[i])
  end
  return math.min(instant, after(q.keys.parked, q.now, q.tenants), after(q.keys.delayed, q.now))
end

local function is_anyone_ready(q, levels)
  local ready = 0
  for _, level in ipairs(levels) do
    ready = ready + redis.call("ZCARD", q.keys.ready[level])
  end
  for _, tenant in ipairs(q.tenants and q.tenants.list or {}) do
    for _, at in pairs(tenant.at) do
      ready = ready + (at.present and 1 or 0) - (at.was_present and 1 or 0)
    end
  end
  return ready > 0
end

-- Whom to wake when the caller's own hands are full: somebody for what is left, or to hold the alarm that the caller
-- can hold no longer. nil when there is nothing to do, or nobody to do it.
function waking.helper(q, levels, client, leases_key)
  local sleeper = waking.find(q, client)
  if not sleeper then
    return nil
  end
  if not q.claim.is_closed and is_anyone_ready(q, levels) then
    return sleeper
  end
  local alarm_instant, holder = waking.alarm(q)
  -- An alarm for later than what this claim leaves behind is none: whoever is woken takes it over.
  local is_held = holder and holder ~= client and alarm_instant <= waking.next_instant(q, leases_key)
  local is_empty = not q.claim.is_closed and q.waiting + q.delayed + q.running == 0
  return not is_held and not is_empty and sleeper or nil
end

return waking
