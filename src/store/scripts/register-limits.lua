#!lua flags=allow-oom
-- Makes shared limits known to their group, for code that has no queue; what operators changed while running stays.
-- Replies {"registered", since}: when the store came to know the group.
local time = require "time"
local register_shared = require "register_shared"
local group_limits_key = KEYS[1] -- hash: limits shared by the queues of the group
local now_given = ARGV[1] -- µs; empty: the server's time
local server = ARGV[2] -- id of the server the client is connected to
local declared = ARGV[3] -- JSON: rules by limit
local knew_since = ARGV[4] -- since when the caller thought that the store knew the group; empty: it did not know it

local rules = cjson.decode(declared)
local since = register_shared.limits(group_limits_key, rules, server, time.now(now_given), false, knew_since)
return { "registered", since }
