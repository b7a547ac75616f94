-- Stands in for the queue where code without one uses the limits of a group: a queue that holds nothing, under those.
local alone = {}

-- An upstream may close them for so long.
local MAX_CLOSE = 3600000000

-- `names` from the place `from` on. `server` is empty where the script only reads.
function alone.open(limits_key, queues_key, names, from, count, server, now)
  local rules, shared = {}, {}
  for i = 1, count do
    local name = names[from + i - 1]
    rules[i] = { name = name, kind = "shared", limit = name }
    shared[i] = { name = name, limit = name, scopes = {} }
  end
  return {
    keys = { group_limits = limits_key, group_queues = queues_key }, now = now, counts = {}, fence = 0,
    server = server, is_server_met = server ~= "", restarts = 0, restarted_at = 0,
    settings = { limits = { queue = rules }, shared = shared, max_close = MAX_CLOSE },
  }
end

return alone
