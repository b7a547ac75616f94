#!lua flags=allow-oom
-- Makes shared limits known to their group, for code that has no queue; what operators changed while running stays.
-- Replies {"registered"}.
local time = require "time"
local register_shared = require "register_shared"
local group_limits_key = KEYS[1] -- hash: limits shared by the queues of the group
local now_given = ARGV[1] -- µs; empty: the server's time
local server = ARGV[2] -- id of the server the client is connected to
local declared = ARGV[3] -- JSON: rules by limit
local is_again = tonumber(ARGV[4]) -- 1: the caller knew them before, so the store has lost them

register_shared.limits(group_limits_key, cjson.decode(declared), server, time.now(now_given), is_again == 1)
return { "registered" }
