-- Makes shared limits known to their group, as the code declares them.
local register_shared = {}

-- What an operator changed while running stays. `has_forgotten`: the caller knew them before, so that the store has
-- lost what was granted. Then they close as after a restart, unless they have since, whoever made them known again.
function register_shared.limits(limits_key, rules, server, now, has_forgotten)
  local restarts = redis.call("HGET", limits_key, "@restarts")
  for limit, rule in pairs(rules) do
    if redis.call("HEXISTS", limits_key, limit .. "/changed") == 0 then
      redis.call("HSET", limits_key, limit .. "/rule", cmsgpack.pack(rule))
    end
  end
  if not restarts then
    restarts = "0:0"
    redis.call("HSET", limits_key, "@server", server, "@restarts", restarts)
  end
  if has_forgotten and string.match(restarts, "^0:") then
    local at = string.format("%d", now)
    redis.call("HSET", limits_key, "@restarts", "1:" .. at, "@lost", at)
  end
end

return register_shared
