-- The lanes of one line that have work and are not current wait in a ring for their turn.
local ring = {}

-- Lanes read at once.
local STEP = 16

local function open(q, tenant, level, line)
  if not line.ring_key then
    line.ring_key = q.keys.prefix .. "ring:" .. level .. ":" .. tenant.name
    line.buffer, line.next_in_buffer, line.consumed, line.tail = {}, 1, 0, {}
    q.rings = q.rings or {}
    q.rings[#q.rings + 1] = line
  end
end

local function next_lane(q, tenant, level, line)
  open(q, tenant, level, line)
  if line.next_in_buffer > #line.buffer then
    line.buffer = redis.call("LRANGE", line.ring_key, line.consumed, line.consumed + STEP - 1)
    line.next_in_buffer = 1
  end
  local lane = line.buffer[line.next_in_buffer]
  if lane then
    line.next_in_buffer = line.next_in_buffer + 1
    line.consumed = line.consumed + 1
    return lane
  end
  return table.remove(line.tail, 1)
end

function ring.join(q, tenant, level, token)
  local line = tenant.at[level]
  line.lanes, line.changed = line.lanes + 1, true
  if line.lane then
    open(q, tenant, level, line)
    redis.call("EXISTS", line.ring_key)
    line.tail[#line.tail + 1] = token
  else
    line.lane = token
  end
end

-- The current lane has nothing to give: the next one is current.
function ring.leave(q, tenant, level, line)
  line.lanes, line.changed = line.lanes - 1, true
  line.lane = line.lanes > 0 and next_lane(q, tenant, level, line) or nil
end

function ring.rotate(q, tenant, level, line)
  open(q, tenant, level, line)
  line.tail[#line.tail + 1] = line.lane
  line.lane, line.changed = next_lane(q, tenant, level, line), true
end

function ring.save(q)
  for _, line in ipairs(q.rings) do
    if line.consumed > 0 then
      redis.call("LTRIM", line.ring_key, line.consumed, -1)
    end
    if #line.tail > 0 then
      redis.call("RPUSH", line.ring_key, unpack(line.tail))
    end
  end
end

return ring
