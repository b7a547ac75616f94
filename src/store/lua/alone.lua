-- Stands in for the queue where code without one uses the limits of a group: a queue that holds nothing, under those.
-- It needs nothing of what queues need: a script that is called for a single permit is as short as can be.
local group = require "group"

local alone = {}

-- `names` from the place `from` on. `server` is empty where the script only reads. Nil when the store does not know one
-- of them, or was emptied after `known_since`: when it came to know the group, as the caller was told; empty: it does
-- not say. (An older version has not noted it.)
function alone.open(limits_key, queues_key, names, from, count, server, now, known_since)
  local since = known_since ~= "" and redis.call("HGET", limits_key, "@since")
  if since and since ~= known_since then
    return nil
  end
  local shared = {}
  for i = 1, count do
    local name = names[from + i - 1]
    shared[i] = { name = name, limit = name, scopes = {} }
  end
  local q = {
    keys = { group_limits = limits_key, group_queues = queues_key }, now = now, counts = {}, fence = 0,
    server = server, is_server_met = server ~= "", restarts = 0, restarted_at = 0,
    settings = { shared = shared },
  }
  if not group.open(q) then
    return nil
  end
  q.limits = { queue = q.group.states, high = {}, normal = {}, low = {}, tenant = {}, jitters = {} }
  return q
end

return alone
