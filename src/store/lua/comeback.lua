-- Parked tenants that are due come back as hands are free for them: one that is unparked and served by the same script
-- is read and written once.
local decimal = require "decimal"
local tenants = require "tenants"
local standing = require "standing"
local claiming = require "claiming"

local comeback = {}

local AT_ONCE = 64 -- tenants brought back in one claim

-- Of the turns that the free hands are good for, as many as the due have a share among all who may run; at least one.
local function step_of(q, ready, due)
  local turns = math.ceil(q.claim.left / q.settings.quantum)
  return math.max(1, math.ceil(turns * due / (ready + due)))
end

-- Goes on with the claim after each step. Answers whether more may be due than were brought back.
function comeback.run(q, due, levels)
  local ready, back, claim, now_text = 0, 0, q.claim, decimal.of(q.now)
  for _, key in pairs(q.keys.ready) do
    ready = ready + redis.call("ZCARD", key)
  end
  repeat
    local step = math.min(step_of(q, ready, due), AT_ONCE - back)
    local from, count = decimal.of(back), decimal.of(step)
    local names = redis.call("ZRANGEBYSCORE", q.keys.parked, "-inf", now_text, "LIMIT", from, count)
    back = back + #names
    for i = 1, #names do
      local tenant = tenants.load(q, names[i])
      -- Unless a permit that came back had it unparked before, and its turn has parked it anew.
      if not tenant.parked_until then
        standing.unpark(q, tenant)
      end
    end
    if #levels > 0 then
      claiming.run(q, levels)
    end
  until back >= due or claim.left == 0 or claim.is_closed or back >= AT_ONCE
  return back >= AT_ONCE and back < due
end

return comeback
