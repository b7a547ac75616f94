-- Which tenants are behind, and by how much: found through an index (see tenants.rank), never by going through all.
local congestion = require "congestion"
local pace = require "pace"
local tenants = require "tenants"
local throttling = require "throttling"

local backlogs = {}

-- Tenants looked at for those that are behind most. The index is right within a factor of two, so the fifty with most
-- backlog are among so many, unless more than these have nearly the same.
local CANDIDATES = 128

-- Names of tenants that may be behind most. Those with few waiting jobs are in no index: where it has room, tenants
-- that are in line, parked or paused stand in for them.
function backlogs.candidates(q, lines, paused_key)
  local names = redis.call("ZREVRANGE", q.keys.backlog, 0, CANDIDATES - 1)
  local known = {}
  for _, name in ipairs(names) do
    known[name] = true
  end
  for i = 1, #lines + 1 do
    local room = CANDIDATES - #names
    if room > 0 then
      for _, name in ipairs(redis.call("ZRANGE", lines[i] or paused_key, 0, CANDIDATES - 1)) do
        if not known[name] and #names < CANDIDATES then
          known[name] = true
          names[#names + 1] = name
        end
      end
    end
  end
  return names
end

-- How many stand in line or are parked.
function backlogs.active(lines)
  local active = 0
  for _, key in ipairs(lines) do
    active = active + redis.call("ZCARD", key)
  end
  return active
end

function backlogs.of(q, name)
  local tenant = tenants.load(q, name)
  local speed, is_measured = congestion.speed(q, tenant)
  return {
    name = name, tenant = tenant, waiting = tenant.waiting, speed = speed, is_measured = is_measured,
    seconds = tenant.waiting / (speed > 0 and speed or 1), backoff = congestion.backoff(q, tenant.waiting, speed),
  }
end

-- Of these the ones that have longest to wait, the longest first.
function backlogs.longest(q, names, most)
  local rows = {}
  for _, name in ipairs(names) do
    local row = backlogs.of(q, name)
    if row.waiting > 0 then
      rows[#rows + 1] = row
    end
  end
  table.sort(rows, function(a, b)
    if a.seconds ~= b.seconds then
      return a.seconds > b.seconds
    elseif a.waiting ~= b.waiting then
      return a.waiting > b.waiting
    end
    return a.name < b.name
  end)
  rows[most + 1] = nil
  return rows
end

-- Of these the ones with most waiting, the most first.
function backlogs.largest(q, names, most)
  local found = {}
  for _, name in ipairs(names) do
    local tenant = tenants.load(q, name)
    if tenant.waiting > 0 then
      found[#found + 1] = tenant
    end
  end
  table.sort(found, function(a, b)
    if a.waiting ~= b.waiting then
      return a.waiting > b.waiting
    end
    return a.name < b.name
  end)
  local rows = {}
  for i = 1, math.min(most, #found) do
    rows[i] = backlogs.of(q, found[i].name)
  end
  return rows
end

-- For a reply.
function backlogs.encode(q, row)
  local throttles, throttled_at = throttling.read(row.tenant)
  return {
    row.name, row.waiting, string.format("%.2f", row.speed), string.format("%.0f", row.backoff),
    row.is_measured and 1 or 0, throttles, string.format("%.0f", throttled_at), pace.open(row.tenant).backoff,
    congestion.finished(row.tenant, tenants.running(q, row.tenant)),
  }
end

return backlogs
