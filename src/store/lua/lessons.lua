-- What the answers of upstreams teach the limits their calls were granted by.
local tenants = require "tenants"
local limits = require "limits"
local meters = require "meters"
local bucket = require "bucket"
local pushback = require "pushback"
local running = require "running"

local lessons = {}

-- Fields of one lesson in the list: tenant, level it stood on, limit or empty, member of a pool or empty, fence,
-- µs for which the upstream pushed back (0: it did not say how long; empty: it did not push back), and what is left by
-- its word ("remaining:µs until it starts over:limit") or empty.
lessons.WIDTH = 7

-- For how long an upstream may close a limit, where nobody says: for code without a queue, and where the last process
-- that declared the queue is of a version that did not know it.
local MAX_CLOSE = 3600000000

-- What upstreams call a quota is mostly that of an hour.
local QUOTA_WINDOW = 3600000000
local KINDS = { bucket = 1, window = 2, quota = 3, concurrency = 4 }

local function window_of(rule)
  return rule.window or (rule.kind == "quota" and QUOTA_WINDOW or math.huge)
end

-- Of two limits of a scope the one that an upstream more likely means by "too many": it speaks of the last moments, and
-- a budget for the day is no better off for being closed. So that with the shorter window; of the same the bucket, and
-- of two buckets the slower.
local function is_narrower(rule, than)
  local window, other = window_of(rule), window_of(than)
  if window ~= other then
    return window < other
  elseif rule.kind ~= than.kind then
    return KINDS[rule.kind] < KINDS[than.kind]
  end
  return rule.count and rule.count < than.count
end

local function narrowest(scopes, kind)
  for i = 1, #scopes do
    local found
    for _, state in ipairs(scopes[i]) do
      local rule = state.rule
      local is_meant = kind and rule.kind == kind or not kind and rule.kind ~= "concurrency"
      if is_meant and (not found or is_narrower(rule, found.rule)) then
        found = state
      end
    end
    if found then
      return found
    end
  end
  return nil
end

-- A share of the queue's limit learns nothing: that limit does.
local function own(states)
  local found = {}
  for _, state in ipairs(states) do
    if not state.rule.is_share then
      found[#found + 1] = state
    end
  end
  return found
end

-- The limit of that name; without a name the narrowest, which is one of the tenant's before one of its level before one
-- of the queue, and one that meters calls before one that only counts jobs.
local function find(q, tenant, level, name, kind)
  local scopes = { own(limits.of_tenant(q, tenant)), q.limits[level], q.limits.queue }
  if name ~= "" then
    return (meters.named(scopes, name, kind))
  end
  return narrowest(scopes, kind) or not kind and narrowest(scopes, "concurrency") or nil
end

-- What is left is for a quota to learn: the one of that name, or where another limit has the name, the narrowest.
local function find_quota(q, tenant, level, name)
  local state = find(q, tenant, level, name, "quota")
  if state or not find(q, tenant, level, name) then
    return state
  end
  return find(q, tenant, level, "", "quota")
end

function lessons.close(q, state, fence, for_us)
  local closed_until = for_us > 0 and q.now + math.min(for_us, q.settings.max_close or MAX_CLOSE) or 0
  state.pushed = pushback.learn(state.pushed, fence, closed_until, q.now, q.fence)
  state.pushed_changed = true
  state.closed_until = math.max(state.closed_until, state.pushed.closed_until)
  if state.rule.kind == "bucket" then
    bucket.slow(state, pushback.share(state.pushed))
  end
end

function lessons.feed(q, state, member, reading)
  local remaining, resets_in, limit = string.match(reading, "^(%d+):(%d+):(%d+)$")
  state.meter.learn(state, member, tonumber(remaining), q.now + tonumber(resets_in), tonumber(limit))
end

function lessons.apply(q, list, from, count)
  if not q.limits then
    return
  end
  for at = from, from + (count - 1) * lessons.WIDTH, lessons.WIDTH do
    local tenant, level, name = tenants.load(q, list[at]), list[at + 1], list[at + 2]
    if list[at + 5] ~= "" then
      local state = find(q, tenant, level, name)
      if state then
        lessons.close(q, state, tonumber(list[at + 4]), tonumber(list[at + 5]))
      end
    end
    if list[at + 6] ~= "" and q.limits.has_quota then
      local state = find_quota(q, tenant, level, name)
      if state then
        lessons.feed(q, state, list[at + 3], list[at + 6])
        running.free(q, list[at])
      end
    end
  end
end

return lessons
