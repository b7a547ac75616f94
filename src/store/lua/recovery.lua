-- What is due: jobs whose lease ran out, and delayed jobs.
local queue = require "queue"
local tenants = require "tenants"
local lanes = require "lanes"
local fronts = require "fronts"
local standing = require "standing"
local places = require "places"
local pace = require "pace"
local record = require "record"
local moves = require "moves"
local running = require "running"
local actions = require "actions"
local claimed = require "claimed"

local recovery = {}

local STALLED_AT_ONCE = 256 -- jobs of expired leases brought back in one claim

local function stall(q, job, value)
  local level, lane, sequence, name = places.parse(job)
  local text, stood_on, members = record.of_claimed(value)
  local tenant = tenants.load(q, name)
  running.ends(q, name, stood_on or level, 1, record.cost(text), members)
  local action, became = actions.of_lane(q, name, lane, sequence), "canceled"
  if not moves.end_canceled(q, tenant, level, lane, job, action and actions.is_over(action)) then
    became = moves.stalled(q, tenant, level, lane, sequence, job, text)
  end
  pace.discount(tenant, became)
  if action then
    actions.come_back(q, action, job, became, "stalled", "")
  end
end

-- Answers the leases taken back, member and claim by turns, and whether there may be more.
function recovery.reap(q, members)
  local taken, jobs = {}, 0
  for _, member in ipairs(members) do
    if jobs >= STALLED_AT_ONCE then
      return taken, true
    end
    local fence = string.match(member, "^%d+")
    -- A claim that its own worker is just telling of is left to the next call.
    if not q.ended[fence] then
      local claim_key = q.keys.prefix .. "claim:" .. fence
      local flat = claimed.read(claim_key)
      for i = 1, #flat, 2 do
        stall(q, flat[i], flat[i + 1])
      end
      jobs = jobs + #flat / 2
      taken[#taken + 1] = member
      taken[#taken + 1] = claim_key
    end
  end
  return taken, false
end

-- Puts delayed jobs at the front of their lanes.
function recovery.fall_due(q, jobs)
  moves.open(q)
  local texts = redis.call("HMGET", q.keys.aside, unpack(jobs))
  for i, job in ipairs(jobs) do
    local level, lane, sequence, name = places.parse(job)
    local action = actions.of_lane(q, name, lane, sequence)
    q.undelayed[i] = job
    if action and actions.is_over(action) then
      -- It was counted as canceled when its action ended.
      q.unset_aside[#q.unset_aside + 1] = job
      q.dropped[#q.dropped + 1] = job
    else
      local tenant = tenants.load(q, name)
      tenant.delayed, tenant.waiting, tenant.has_grown = tenant.delayed - 1, tenant.waiting + 1, true
      q.delayed, q.waiting = q.delayed - 1, q.waiting + 1
      queue.count(q, "promoted", 1)
      fronts.fall_due(q, tenant, lanes.open(q, tenant, level, lane), job, texts[i])
      standing.settle(q, tenant)
      if action then
        actions.move(action, "delayed", "waiting", 1)
      end
    end
  end
end

return recovery
