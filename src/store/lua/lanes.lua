-- Lanes: the lines of one tenant on one level. Fresh jobs stand in the lane's list with contiguous sequences, so that a
-- job's place follows from its number; what came back (due, stalled, returned) stands in the lane's front list by key,
-- its record aside, and goes first. Lanes with work take turns: one is current, the others wait in the ring.
local queue = require "queue"
local places = require "places"
local record = require "record"

local lanes = {}

local DEFAULT = "default"
-- Records read from a list at once, so that large payloads are not read far beyond the reply's limit.
local STEP = 16

local function open_ring(q, tenant, level, line)
  if not line.ring_key then
    line.ring_key = q.keys.prefix .. "ring:" .. level .. ":" .. tenant.name
    line.buffer, line.next_in_buffer, line.consumed, line.tail = {}, 1, 0, {}
  end
end

local function next_lane(q, tenant, level, line)
  open_ring(q, tenant, level, line)
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

local function join_turns(q, tenant, level, token)
  local line = tenant.at[level]
  line.lanes, line.changed = line.lanes + 1, true
  if line.lane then
    open_ring(q, tenant, level, line)
    redis.call("EXISTS", line.ring_key)
    line.tail[#line.tail + 1] = token
  else
    line.lane = token
  end
end

-- The current lane has nothing to give: the next one is current.
local function leave_turns(q, tenant, level, line)
  line.lanes, line.changed = line.lanes - 1, true
  line.lane = line.lanes > 0 and next_lane(q, tenant, level, line) or nil
end

-- Only a lane that has had its turn goes behind the others: after one that left, the next has not been served yet.
function lanes.rotate(q, tenant, level)
  local line = tenant.at[level]
  if line.lanes > 1 and line.served == line.lane then
    local lane = line.lane
    open_ring(q, tenant, level, line)
    line.tail[#line.tail + 1] = lane
    line.lane, line.changed = next_lane(q, tenant, level, line), true
  end
end

-- How many jobs the lane holds, in its list and before it.
local function remaining(lane)
  return lane.length - lane.taken + #lane.returned + lane.front_length - lane.front_taken + #lane.due
end

local function in_turns(lane)
  return remaining(lane) > 0 and not lane.busy
end

local function open_front(q, tenant, lane)
  lane.front_key = q.keys.prefix .. "front:" .. lane.level .. ":" .. lane.token .. ":" .. tenant.name
end

function lanes.open(q, tenant, level, token)
  local id = level .. ":" .. token
  local lane = tenant.opened[id]
  if lane then
    return lane
  end
  local key = q.keys.prefix .. "lane:" .. id .. ":" .. tenant.name
  lane = {
    level = level, token = token, is_ordered = places.is_ordered(token), key = key, front_key = nil, next = nil,
    busy = nil, was_busy = nil, was_next = nil,
    taken = 0, front_taken = 0, returned = {}, due = {}, length = redis.call("LLEN", key), front_length = 0,
  }
  if tenant.front > 0 then
    open_front(q, tenant, lane)
    lane.front_length = redis.call("LLEN", lane.front_key)
  end
  if token == DEFAULT then
    local sequence = tenant.at[level].sequence
    lane.next = sequence > 0 and sequence or nil
  else
    lane.lanes_key = q.keys.prefix .. "lanes:" .. tenant.name
    local found = redis.call("HMGET", lane.lanes_key, id, "busy:" .. id)
    lane.next, lane.busy = tonumber(found[1]), found[2] or nil
  end
  lane.was_busy, lane.was_next = lane.busy, lane.next
  tenant.opened[id] = lane
  return lane
end

-- Numbers `count` fresh jobs at the end of the lane and answers the first number. The caller pushes them.
function lanes.append(q, tenant, lane, count)
  local joins = not in_turns(lane) and not lane.busy
  lane.next = lane.next or queue.tick(q)
  local first = lane.next
  lane.next = first + count
  lane.length = lane.length + count
  if joins then
    join_turns(q, tenant, lane.level, lane.token)
  end
  return first
end

-- A job that was claimed comes back to the front of its lane.
function lanes.give_back(q, tenant, level, token, job, text)
  local lane = lanes.open(q, tenant, level, token)
  -- Asked before the lane is free: a busy one is out of turns, whatever waits in it.
  local was_in_turns = in_turns(lane)
  if lane.busy == job then
    lane.busy = nil
  end
  local joins = not was_in_turns and not lane.busy
  open_front(q, tenant, lane)
  redis.call("EXISTS", lane.front_key)
  table.insert(lane.returned, 1, { job = job, text = text })
  if joins then
    join_turns(q, tenant, level, token)
  end
end

-- A delayed job is due: it goes before the fresh ones, behind what came back earlier. Its record stays aside.
function lanes.fall_due(q, tenant, level, token, job, text)
  local lane = lanes.open(q, tenant, level, token)
  -- Asked before the lane is free: a busy one is out of turns, whatever waits in it.
  local was_in_turns = in_turns(lane)
  if lane.busy == job then
    lane.busy = nil
  end
  local joins = not was_in_turns and not lane.busy
  open_front(q, tenant, lane)
  redis.call("EXISTS", lane.front_key)
  lane.due[#lane.due + 1] = { job = job, text = text, is_aside = true }
  if joins then
    join_turns(q, tenant, level, token)
  end
end

-- The job of an ordered lane has ended: the next may start.
function lanes.release(q, tenant, level, token, job)
  local lane = lanes.open(q, tenant, level, token)
  if lane.busy == job then
    lane.busy = nil
    if remaining(lane) > 0 then
      join_turns(q, tenant, level, token)
    end
  end
end

local function read_front(q, lane)
  if lane.front_at and lane.front_at <= #lane.front_jobs then
    return
  end
  lane.front_jobs = redis.call("LRANGE", lane.front_key, lane.front_taken, lane.front_taken + STEP - 1)
  lane.front_at = 1
  lane.front_texts = #lane.front_jobs > 0 and redis.call("HMGET", q.keys.aside, unpack(lane.front_jobs)) or {}
end

-- The first of what stands before the list: { job, text, is_aside }, or nil. `drop` takes it away.
local function peek_front(q, lane)
  if lane.returned[1] then
    return lane.returned[1], function()
      table.remove(lane.returned, 1)
    end
  end
  if lane.front_taken < lane.front_length then
    read_front(q, lane)
    local at = lane.front_at
    return { job = lane.front_jobs[at], text = lane.front_texts[at], is_aside = true }, function()
      lane.front_at = at + 1
      lane.front_taken = lane.front_taken + 1
    end
  end
  if lane.due[1] then
    return lane.due[1], function()
      table.remove(lane.due, 1)
    end
  end
end

-- For moves.lua, which writes these lists.
local function note(q, list, job)
  q[list] = q[list] or {}
  table.insert(q[list], job)
end

local function is_marked(q, tenant, job)
  if tenant.marks == 0 or not redis.call("ZSCORE", q.keys.canceled, job) then
    return false
  end
  tenant.marks = tenant.marks - 1
  note(q, "dropped", job)
  return true
end

local function deliver(q, taken, job, text)
  taken[#taken + 1] = job
  taken[#taken + 1] = text
  q.bytes_left = q.bytes_left - #text
end

local function take_front(q, tenant, lane, count, taken)
  local got = 0
  while got < count and q.bytes_left > 0 do
    local first, drop = peek_front(q, lane)
    if not first then
      return got
    end
    local is_suspect = record.is_suspect(first.text)
    if is_suspect and q.suspect_taken then
      return got, true
    end
    drop()
    if first.is_aside then
      note(q, "unset_aside", first.job)
    end
    if not is_marked(q, tenant, first.job) then
      q.suspect_taken = q.suspect_taken or is_suspect
      deliver(q, taken, first.job, first.text)
      got = got + 1
    end
  end
  return got
end

local function take_list(q, tenant, lane, count, taken)
  local got = 0
  while got < count and lane.taken < lane.length and q.bytes_left > 0 do
    local texts = redis.call("LRANGE", lane.key, lane.taken, lane.taken + math.min(STEP, count - got) - 1)
    local first = lane.next - lane.length + lane.taken
    for i = 1, #texts do
      if q.bytes_left <= 0 then
        return got
      end
      local job = places.key(lane.level, lane.token, first + i - 1, tenant.name)
      lane.taken = lane.taken + 1
      if not is_marked(q, tenant, job) then
        deliver(q, taken, job, texts[i])
        got = got + 1
      end
    end
  end
  return got
end

-- Takes up to `count` jobs of one line into `taken` (job, record, …), from as many of its lanes as it needs.
-- Answers how many, and whether what is left cannot be taken in this claim: a second suspect, or the reply is full.
function lanes.take(q, tenant, level, count, taken)
  local line = tenant.at[level]
  local got = 0
  while got < count and line.lane do
    local lane = lanes.open(q, tenant, level, line.lane)
    local wanted = lane.is_ordered and 1 or count - got
    local before = #taken
    local n, is_held = take_front(q, tenant, lane, wanted, taken)
    if not (is_held and lane.is_ordered) then
      n = n + take_list(q, tenant, lane, wanted - n, taken)
    end
    got = got + n
    line.served = n > 0 and line.lane or line.served
    if lane.is_ordered and n > 0 then
      lane.busy = taken[before + 1]
      leave_turns(q, tenant, level, line)
    elseif remaining(lane) == 0 then
      leave_turns(q, tenant, level, line)
    elseif is_held or q.bytes_left <= 0 then
      return got, true
    end
  end
  return got, false
end

local function save_lane(q, tenant, lane)
  if lane.taken > 0 then
    redis.call("LTRIM", lane.key, lane.taken, -1)
  end
  if lane.front_taken > 0 then
    redis.call("LTRIM", lane.front_key, lane.front_taken, -1)
  end
  for i = #lane.returned, 1, -1 do
    local job = lane.returned[i]
    redis.call("LPUSH", lane.front_key, job.job)
    redis.call("HSET", q.keys.aside, job.job, job.text)
  end
  for _, job in ipairs(lane.due) do
    redis.call("RPUSH", lane.front_key, job.job)
  end
  tenant.front = tenant.front - lane.front_taken + #lane.returned + #lane.due
  if lane.token == DEFAULT then
    if lane.next ~= lane.was_next then
      local at = tenant.at[lane.level]
      at.sequence, at.changed = lane.next, true
    end
    return
  end
  local id = lane.level .. ":" .. lane.token
  if remaining(lane) == 0 and not lane.busy then
    -- Numbers of this lane are never given again: the clock, where a new one would start, is moved past them.
    if lane.was_next or lane.was_busy then
      redis.call("HDEL", lane.lanes_key, id, "busy:" .. id)
      q.clock = math.max(q.clock, lane.next or 0)
    end
    return
  end
  if lane.next ~= lane.was_next then
    redis.call("HSET", lane.lanes_key, id, string.format("%d", lane.next))
  end
  if lane.busy ~= lane.was_busy then
    if lane.busy then
      redis.call("HSET", lane.lanes_key, "busy:" .. id, lane.busy)
    else
      redis.call("HDEL", lane.lanes_key, "busy:" .. id)
    end
  end
end

-- Writes the lanes of every loaded tenant; before tenants.save, which writes the counts.
function lanes.save(q)
  if not q.tenants then
    return
  end
  for _, tenant in ipairs(q.tenants.list) do
    for _, lane in pairs(tenant.opened) do
      save_lane(q, tenant, lane)
    end
    for _, line in pairs(tenant.at) do
      if line.ring_key then
        if line.consumed > 0 then
          redis.call("LTRIM", line.ring_key, line.consumed, -1)
        end
        if #line.tail > 0 then
          redis.call("RPUSH", line.ring_key, unpack(line.tail))
        end
      end
    end
  end
end

return lanes
