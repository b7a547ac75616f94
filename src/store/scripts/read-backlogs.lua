#!lua flags=no-writes
-- How many jobs of each of some tenants wait. Replies {"backlogs", …} in the order of the names.
local queue_key = KEYS[1] -- hash: the queue's state
local names, names_from = ARGV, 1 -- list: tenants

local prefix = string.sub(queue_key, 1, -6)
local reply = { "backlogs" }
for i = names_from, #names do
  local state = redis.call("HGET", prefix .. "tenant:" .. names[i], "state")
  reply[i + 1] = state and cmsgpack.unpack(state) or 0
end
return reply
