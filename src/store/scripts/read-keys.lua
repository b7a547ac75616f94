#!lua flags=no-writes
-- Names of keys of the queue, a step of a walk over all keys of its node: only the audit walks so, to find what nothing
-- leads to. Replies {"keys", cursor, names}: without the prefix; the cursor is "0" at the end.
local queue_key = KEYS[1] -- hash: the queue's state
local cursor = ARGV[1] -- of the step before, or 0
local count = tonumber(ARGV[2]) -- keys looked at, about

local prefix = string.sub(queue_key, 1, -6)
local pattern = string.gsub(prefix, "[%*%?%[%]\\]", "\\%0") .. "*"
local found = redis.call("SCAN", cursor, "MATCH", pattern, "COUNT", count)
local names = {}
for i, name in ipairs(found[2]) do
  names[i] = string.sub(name, #prefix + 1)
end
return { "keys", found[1], names }
