-- Makes shared limits known to their group, as the code declares them.
local shared_rules = require "shared_rules"

local register_shared = {}

-- What an operator changed while running stays. `has_forgotten`: the caller knew them before, so that the store has
-- lost what was granted; so it is where they are known since another instant than it was told (`knew_since`, empty
-- where it was not). Then they close as after a restart, unless they have since, whoever made them known again. Answers
-- when the store came to know the group.
function register_shared.limits(limits_key, rules, server, now, has_forgotten, knew_since)
  local restarts, since = unpack(redis.call("HMGET", limits_key, "@restarts", "@since"))
  -- A group from before this was noted has none.
  local known_since = since or (restarts and "0" or string.format("%d", now))
  for limit, rule in pairs(rules) do
    local before, changed = unpack(redis.call("HMGET", limits_key, limit .. "/rule", limit .. "/changed"))
    if not changed then
      shared_rules.set(limits_key, limit, rule, before)
    end
  end
  if not restarts then
    restarts = "0:0"
    redis.call("HSET", limits_key, "@server", server, "@restarts", restarts, "@since", known_since)
  end
  local is_lost = has_forgotten or (knew_since ~= "" and knew_since ~= known_since)
  if is_lost and string.match(restarts, "^0:") then
    local at = string.format("%d", now)
    redis.call("HSET", limits_key, "@restarts", "1:" .. at, "@lost", at)
  end
  return known_since
end

return register_shared
