#!lua flags=no-writes
-- Names of keys of the queue, a step of a walk over all keys of its node: only the audit walks so, to find what nothing
-- leads to. Replies {"keys", quiet, cursor, names}: for how many µs nobody has claimed anything; the cursor is "0" at
-- the end; names are without the prefix. Or {"unregistered"}.
local time = require "time"
local queue = require "queue"
local auditing = require "auditing"
local queue_key = KEYS[1] -- hash: the queue's state
local now_given = ARGV[1] -- µs; empty: the server's time
local cursor = ARGV[2] -- of the step before, or 0
local count = tonumber(ARGV[3]) -- keys looked at, about

local prefix = string.sub(queue_key, 1, -6)
local q = queue.open({ prefix = prefix, queue = queue_key }, time.now(now_given))
if not q then
  return { "unregistered" }
end
local pattern = string.gsub(prefix, "[%*%?%[%]\\]", "\\%0") .. "*"
local found = redis.call("SCAN", cursor, "MATCH", pattern, "COUNT", count)
local names = {}
for i, name in ipairs(found[2]) do
  names[i] = string.sub(name, #prefix + 1)
end
return { "keys", auditing.quiet(q), found[1], names }
