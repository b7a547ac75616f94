#!lua flags=allow-oom
-- Notes that a queue lives elsewhere, or is on its way there, unless somebody has noted something else meanwhile.
-- Replies {"moved"} or {"other"}.
local home_key = KEYS[1] -- string: where the queue lives
local from = ARGV[1] -- what was noted before
local to = ARGV[2] -- what is noted now

if redis.call("GET", home_key) ~= from then
  return { "other" }
end
redis.call("SET", home_key, to)
return { "moved" }
