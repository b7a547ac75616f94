-- Dead letters past their time: nobody is shown them any more. They are taken away a few at once, by whoever adds
-- others, sweeps them, or audits the queue.
local queue = require "queue"

local expiring = {}

-- Who died then, or before, has been kept long enough. (µs)
function expiring.instant(q)
  return q.now - q.settings.keep_dead
end

function expiring.find(q, most)
  local instant = string.format("%d", expiring.instant(q))
  return redis.call("ZRANGEBYSCORE", q.keys.dead, "-inf", instant, "LIMIT", 0, most)
end

-- Their number is counted.
function expiring.forget(q, jobs)
  if #jobs > 0 then
    redis.call("ZREM", q.keys.dead, unpack(jobs))
    redis.call("HDEL", q.keys.dead_jobs, unpack(jobs))
    queue.count(q, "dead_expired", #jobs)
  end
end

return expiring
