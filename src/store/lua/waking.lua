-- Waking without polling: an idle client blocks on a list of its own. Whoever makes work claimable wakes one of them;
-- that one wakes the next if it cannot take everything. One client holds the alarm for the next known instant.
local time = require "time"
local part_time = require "part_time"

local waking = {}

local TOKEN_KEPT_MS = 60000
-- Leases looked through for their holders: there are about as many as there are claims in flight.
local HOLDERS = 2000
-- How long after its instant an alarm is still taken as held, in case its holder is a little late.
local ALARM_SLACK_MS = 100

local ALL_LEVELS = { high = true, normal = true, low = true }
local SERVES_ALL = "high normal low"

-- What a client is called on the list of the idle: by its levels as well, unless it serves all of them.
function waking.name_of(client, levels_served)
  if levels_served == SERVES_ALL or levels_served == "" then
    return client
  end
  return client .. " " .. string.gsub(levels_served, " ", "+")
end

local function client_of(name)
  return string.match(name, "^%S+")
end

local function serves_all(name)
  return not string.find(name, " ", 1, true)
end

-- Whom to wake of the idle, read before the first write; nil when nobody is idle who would be of use. It is one
-- client, unless none serves all of the levels (a set; none given: all three). Whoever asks because its own hands are
-- full is no help, though it may still be on the list: its alarm rang, and nobody has woken it.
function waking.find(q, asking, levels)
  local found = redis.call("ZREVRANGE", q.keys.idle, 0, asking and 1 or 0, "WITHSCORES")
  local at = found[1] == asking and 3 or 1
  if not found[at] or tonumber(found[at + 1]) <= q.now then
    return nil
  end
  local sleepers = { found[at] }
  if not serves_all(found[at]) then
    sleepers = part_time.find(q, asking, levels or ALL_LEVELS)
  end
  for _, name in ipairs(sleepers or {}) do
    redis.call("EXISTS", q.keys.prefix .. "wake:" .. client_of(name))
  end
  return sleepers
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

function waking.wake(q, sleepers)
  for _, name in ipairs(sleepers) do
    redis.call("ZREM", q.keys.idle, name)
    waking.tell(q, client_of(name), "work")
  end
end

-- Each set of levels has an alarm of its own: behind one held by a client that serves but one level, those who serve
-- the others would sleep on when a limit opens.
local function alarm_key(q, name)
  local levels = string.match(name, " (.*)$")
  return levels and q.keys.prefix .. "alarm:" .. levels or q.keys.alarm
end

-- The instant of the alarm held now by somebody with these levels, and the name of who holds it; nil when nobody does.
function waking.alarm(q, name)
  local found = redis.call("GET", alarm_key(q, name))
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

function waking.set_alarm(q, name, instant)
  local ms = math.max(1, math.ceil((instant - q.now) / 1000)) + ALARM_SLACK_MS
  redis.call("SET", alarm_key(q, name), string.format("%.0f:%s", instant, name), "PX", ms)
end

-- Whether the alarm is this client's when it next has to look at this instant.
function waking.holds_alarm(q, name, instant)
  local alarm_instant, holder = waking.alarm(q, name)
  return not alarm_instant or holder == name or instant < alarm_instant
end

-- Whether one of them could sleep past the instant: nobody but `asking` holds an alarm for it or for an earlier one.
local function may_sleep_past(q, sleepers, instant, asking)
  for _, name in ipairs(sleepers) do
    local alarm_instant, holder = waking.alarm(q, name)
    if not alarm_instant or holder == asking or alarm_instant > instant then
      return true
    end
  end
  return false
end

-- Whom to wake because something is due at this instant; nil when nobody is idle, or somebody looks before it anyway.
function waking.find_for(q, instant)
  local sleepers = instant < time.NEVER and waking.find(q)
  return sleepers and may_sleep_past(q, sleepers, instant) and sleepers or nil
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

-- When a claim can next bring anything. What fell due in this very script is handled; the sets, and what this script
-- parked and postponed, say what comes next. Leases that ran out and were left are in none of it: the caller looks
-- after them (see recovery.ts), and whoever else asks.
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

-- Levels with somebody in line whom the caller leaves there: on those it serves anybody, on others whom this script has
-- brought.
local function levels_left(q, levels)
  local ready, left = {}, {}
  for _, level in ipairs(levels) do
    ready[level] = q.claim.is_closed and 0 or redis.call("ZCARD", q.keys.ready[level])
  end
  for _, tenant in ipairs(q.tenants and q.tenants.list or {}) do
    for level, at in pairs(tenant.at) do
      if ready[level] and not q.claim.is_closed then
        ready[level] = ready[level] + (at.present and 1 or 0) - (at.was_present and 1 or 0)
      end
    end
  end
  for level, count in pairs(ready) do
    left[level] = count > 0 or nil
  end
  if #levels < 3 then
    part_time.add_unserved(q, levels, left)
  end
  return left
end

-- Whom to wake when the caller's own hands are full: somebody for what is left, or to hold the alarm that the caller
-- can hold no longer. nil when there is nothing to do, or nobody to do it.
function waking.helper(q, levels, asking, leases_key)
  local sleepers = waking.find(q, asking)
  if not sleepers then
    return nil
  end
  local left = levels_left(q, levels)
  if next(left) then
    local helpers = serves_all(sleepers[1]) and sleepers or waking.find(q, asking, left)
    if helpers then
      return helpers
    end
  end
  if not q.claim.is_closed and q.waiting + q.delayed + q.running == 0 then
    return nil
  end
  return may_sleep_past(q, sleepers, waking.next_instant(q, leases_key), asking) and sleepers or nil
end

return waking
