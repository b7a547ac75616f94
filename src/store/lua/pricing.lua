-- Whether limits could ever grant what new jobs cost.
local limits = require "limits"
local record = require "record"
local submitting = require "submitting"
local tenants = require "tenants"

local pricing = {}

-- What each limit that is shared with other queues grants at the most, where it says so.
local function shared_counts(q)
  local counts = {}
  for _, shared in ipairs(q.settings.shared or {}) do
    local rule = redis.call("HGET", q.keys.group_limits, shared.limit .. "/rule")
    counts[shared.limit] = rule and cmsgpack.unpack(rule).count
  end
  return counts
end

-- The most that a job may cost, and the limit that says so. A quota's upstream may grant more tomorrow.
local function most(rules, least, name, counts)
  for _, rule in ipairs(rules or {}) do
    local count = rule.count or counts[rule.limit or ""]
    if count and count < least then
      least, name = count, rule.name
    end
  end
  return least, name
end

-- What is to be replied of the first job that costs too much; nil when there is none.
function pricing.costly(q, lines, from)
  local at, line, of_queue, counts = from, 0, q.settings.limits, shared_counts(q)
  while lines[at] do
    local level, kind, count = lines[at + 1], lines[at + 4], tonumber(lines[at + 5])
    local tenant, width = tenants.load(q, lines[at]), submitting.width(kind)
    local largest, name = most(of_queue.queue, math.huge, nil, counts)
    largest, name = most(of_queue[tenant.fields.override or level], largest, name, counts)
    largest, name = most(limits.tenant_rules(q, tenant), largest, name, counts)
    for job = 0, count - 1 do
      if record.cost(lines[at + 5 + (job + 1) * width]) > largest then
        return { "costly", line, job, name, largest }
      end
    end
    at, line = at + 6 + count * width, line + 1
  end
  return nil
end

return pricing
