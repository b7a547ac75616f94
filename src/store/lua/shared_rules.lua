-- The rule of a shared limit, as its group keeps it.
local meters = require "meters"

local shared_rules = {}

-- `before` is the rule stored until now, packed; nil or false without one. What one kind has counted says nothing to
-- another: with its kind the limit starts anew. What its upstream has said when it pushed back holds for all of them.
function shared_rules.set(limits_key, limit, rule, before)
  if before and cmsgpack.unpack(before).kind ~= rule.kind then
    local counted = { limit, limit .. "/reserved", limit .. "/high" }
    if not meters.has_jitter(rule) then
      counted[#counted + 1] = limit .. "/jitter"
    end
    redis.call("HDEL", limits_key, unpack(counted))
  end
  redis.call("HSET", limits_key, limit .. "/rule", cmsgpack.pack(rule))
end

return shared_rules
