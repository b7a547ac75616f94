#!lua flags=allow-oom
-- Charges shared limits of a group for code that has no job, many callers at once: each gets all it asks for or none.
-- Replies {"answers", fence, fresh µs (0: for ever), and of callers in a row who are answered alike their number, 1 or
-- 0, µs to wait, what remains after the last of them (-1: unknown), "<limit>=<member>" of each pool, joined by &};
-- {"costly", limit, most} when one could never grant what is asked for, {"unknown", limit}, {"slots", limit} when it
-- counts jobs in flight: nothing was charged then. Or {"unregistered"}.
local time = require "time"
local alone = require "alone"
local group = require "group"
local acquiring = require "acquiring"
local requests = require "requests"
local group_limits_key = KEYS[1] -- hash: limits shared by the queues of the group
local group_queues_key = KEYS[2] -- zset: queues of the group
local client_key = KEYS[3] -- hash: replies to the client's last requests
local now_given = ARGV[1] -- µs; empty: the server's time
local request = tonumber(ARGV[2]) -- number of the client's request
local server = ARGV[3] -- id of the server the client is connected to
local known_since = ARGV[4] -- when the store came to know the group, as the caller was told; empty: it does not say
local level = ARGV[5] -- of the callers
local stale_fence = tonumber(ARGV[6]) -- of grants that came too late to be used
local stale_permits = tonumber(ARGV[7]) -- how many these are
local stale_members = ARGV[8] -- of pools that had granted them: "<limit>=<member>=<permits>", joined by &
local names = tonumber(ARGV[9]) -- how many limits
local asked, asked_from = ARGV, 10 -- list: the limits, then pairs: callers in a row, permits of each

local known = requests.recall(client_key, request)
if known then
  return known
end
local now = time.now(now_given)
local q = alone.open(group_limits_key, group_queues_key, asked, asked_from, names, server, now, known_since)
if not q then
  return { "unregistered" }
end
local stale = { fence = stale_fence, permits = stale_permits, members = stale_members }
local reply = acquiring.run(q, level, now, stale, asked, asked_from, names)
if reply[1] == "answers" then
  group.save(q)
end
return requests.remember(client_key, request, reply)
