-- Places in a sorted set, by score and member: whoever goes on from one finds it though the member is gone. Thousands
-- can have one score, in the order of their bytes: they are looked for by halves.
local bytes = require "bytes"

local ranks = {}

-- How many stand before a place.
function ranks.before(key, score, member)
  local low = redis.call("ZCOUNT", key, "-inf", "(" .. score)
  local high = low + redis.call("ZCOUNT", key, score, score)
  while low < high do
    local middle = math.floor((low + high) / 2)
    if bytes.is_behind(member, redis.call("ZRANGE", key, middle, middle)[1]) then
      low = middle + 1
    else
      high = middle
    end
  end
  return low
end

-- How many stand before a place or at it.
function ranks.up_to(key, score, member)
  local count = ranks.before(key, score, member)
  local standing = redis.call("ZSCORE", key, member)
  return standing and tonumber(standing) == tonumber(score) and count + 1 or count
end

return ranks
