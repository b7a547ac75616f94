-- Tenants parked under limits that have changed since: all of them go back into line, in bounded steps. The set of the
-- parked becomes that of the unparking in one command; claims put them back from there (see finish-and-claim.lua).
local tenants = require "tenants"
local standing = require "standing"
local waking = require "waking"

local lifting = {}

local AT_ONCE = 200 -- tenants put back in line

-- What is left of an earlier change goes first. `is_left` says that this script cannot lift anybody yet: the caller is
-- to be called again.
function lifting.open(q)
  local earlier = redis.call("ZRANGE", q.keys.unparking, 0, AT_ONCE - 1)
  for _, name in ipairs(earlier) do
    standing.unpark(q, tenants.load(q, name))
  end
  return {
    earlier = #earlier, is_left = #earlier == AT_ONCE, parked = redis.call("ZCARD", q.keys.parked),
    sleeper = waking.find(q),
  }
end

-- After the tenants are saved. Answers whether all are on their way.
function lifting.save(q, lift)
  if lift.sleeper then
    waking.wake(q, lift.sleeper)
  end
  if lift.is_left then
    return false
  end
  if lift.parked > 0 then
    redis.call("RENAME", q.keys.parked, q.keys.unparking)
  end
  return true
end

return lifting
