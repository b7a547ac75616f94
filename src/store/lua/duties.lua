-- What the queue itself has to do besides jobs: aggregate an action, tell its webhook, seal it, free a dropped list. A
-- duty is a member of one sorted set; its score is when it may be taken, or, while somebody has it, when it may be
-- taken away. So the score is also the fence: whoever comes back with another has lost it. Duties stand under no limit
-- and in no tenant's line, because they are nobody's calls.
local duties = {}

function duties.name(kind, action)
  return kind .. ":" .. action.tenant .. ":" .. action.name
end

local function opened(q)
  q.duties = q.duties or { set = {}, dropped = {} }
  return q.duties
end

function duties.add(q, duty, due)
  opened(q).set[duty] = due
end

function duties.drop(q, duty)
  local list = opened(q).dropped
  list[#list + 1] = duty
end

-- Whether somebody should look for duties.
function duties.are_added(q)
  return q.duties ~= nil and next(q.duties.set) ~= nil
end

function duties.save(q)
  for duty, due in pairs(q.duties.set) do
    redis.call("ZADD", q.keys.duties, string.format("%d", due), duty)
  end
  if #q.duties.dropped > 0 then
    redis.call("ZREM", q.keys.duties, unpack(q.duties.dropped))
    redis.call("HDEL", q.keys.duty_tries, unpack(q.duties.dropped))
  end
end

return duties
