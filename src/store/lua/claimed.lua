-- The jobs of a claim as they are kept: one hash, which has no order once a record is longer than a few bytes.
local places = require "places"

local claimed = {}

local function goes_before(a, b)
  if a.lane ~= b.lane then
    return a.lane < b.lane
  end
  if a.sequence ~= b.sequence then
    return a.sequence < b.sequence
  end
  return a.job < b.job
end

-- Job and record by turns, those of a lane in the order in which they stood there. Of the lanes no order is kept: all
-- of them start together.
function claimed.read(claim_key)
  local flat, jobs = redis.call("HGETALL", claim_key), {}
  for i = 1, #flat, 2 do
    local level, lane, sequence, tenant = places.parse(flat[i])
    jobs[#jobs + 1] = {
      job = flat[i], text = flat[i + 1], lane = level .. ":" .. lane .. ":" .. tenant, sequence = tonumber(sequence),
    }
  end
  table.sort(jobs, goes_before)
  for i, each in ipairs(jobs) do
    flat[2 * i - 1], flat[2 * i] = each.job, each.text
  end
  return flat
end

return claimed
