-- Makes shared limits known to their group, as the code declares them.
local register_shared = {}

-- What an operator changed while running stays. `has_forgotten`: the caller knew them before, so that the store has
-- lost what was granted; they close as after a restart.
function register_shared.limits(limits_key, rules, server, now, has_forgotten)
  local is_new = redis.call("EXISTS", limits_key) == 0
  for limit, rule in pairs(rules) do
    if redis.call("HEXISTS", limits_key, limit .. "/changed") == 0 then
      redis.call("HSET", limits_key, limit .. "/rule", cmsgpack.pack(rule))
    end
  end
  if is_new then
    redis.call("HSET", limits_key, "@server", server, "@restarts", "0:0")
    if has_forgotten then
      local at = string.format("%d", now)
      redis.call("HSET", limits_key, "@restarts", "1:" .. at, "@lost", at)
    end
  end
end

return register_shared
