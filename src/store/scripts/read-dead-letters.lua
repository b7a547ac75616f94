#!lua flags=no-writes
-- Dead letters, newest first, from a position on. Replies {"letters", total, jobs}: job, letter, for each.
local dead_key = KEYS[1] -- zset: job → when it became a dead letter
local dead_jobs_key = KEYS[2] -- hash: job → reason and record
local from = tonumber(ARGV[1]) -- position
local count = tonumber(ARGV[2]) -- at most

local jobs = redis.call("ZREVRANGE", dead_key, from, from + count - 1)
local found = {}
if #jobs > 0 then
  local letters = redis.call("HMGET", dead_jobs_key, unpack(jobs))
  for i, job in ipairs(jobs) do
    found[#found + 1] = job
    found[#found + 1] = letters[i] or ""
  end
end
return { "letters", redis.call("ZCARD", dead_key), found }
