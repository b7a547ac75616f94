#!lua flags=no-writes
-- Actions as they stand. Replies {"actions", now, action, …}: each is {name, state, numbers by name, rules as JSON,
-- aggregate, error, statistics}, or an empty list where there is none; the last three only if they were asked for.
local time = require "time"
local queue = require "queue"
local actions = require "actions"
local queue_key = KEYS[1] -- hash: the queue's state
local now_given = ARGV[1] -- µs; empty: the server's time
local with_statistics = tonumber(ARGV[2]) -- 1: what their jobs took, how they failed, and the aggregate
local names, names_from = ARGV, 3 -- list: tenant:name

local q = queue.open({ prefix = string.sub(queue_key, 1, -6), queue = queue_key }, time.now(now_given))
if not q then
  return { "unregistered" }
end
local reply = { "actions", string.format("%d", q.now) }
for i = names_from, #names do
  local tenant, name = string.match(names[i], "^([^:]*):(.*)$")
  reply[#reply + 1] = actions.described(q, tenant, name, with_statistics == 1)
end
return reply
