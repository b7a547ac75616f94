-- What stands before a lane's list: jobs that came back (returned, stalled, due), by key, their records aside. They go
-- first. A front is what was given back now, what stands in the front list, and what has just fallen due, in that
-- order.
local record = require "record"
local queue = require "queue"
local ring = require "ring"
local actions = require "actions"
local places = require "places"
local costs = require "costs"
local duties = require "duties"

local fronts = {}

-- Keys read at once.
local STEP = 16

-- For moves.lua, which writes these lists.
local function note(q, list, job)
  q[list] = q[list] or {}
  table.insert(q[list], job)
end

function fronts.open(q, tenant, lane)
  if not lane.front then
    local key = q.keys.prefix .. "front:" .. lane.level .. ":" .. lane.token .. ":" .. tenant.name
    local length = redis.call("LLEN", key)
    lane.front = { key = key, length = length, left = length, taken = 0, returned = {}, due = {}, at = 1, jobs = {} }
  end
  return lane.front
end

-- Whether anything is left in the lane, in its list or before it.
local function remains(lane)
  return lane.length > lane.taken or (lane.front ~= nil and lane.front.left > 0)
end

-- A job of this lane comes back: an ordered lane that ran it is free again. Answers whether the lane joins the turns:
-- asked before it is free, because a busy one is out of turns, whatever waits in it.
local function comes_back(lane, job)
  local was_in_turns = remains(lane) and not lane.busy
  if lane.busy == job then
    lane.busy = nil
  end
  return not was_in_turns and not lane.busy
end

local function join(q, tenant, lane)
  ring.join(q, tenant, lane.level, lane.token)
end

-- A job that was claimed comes back to the front of its lane.
function fronts.give_back(q, tenant, lane, job, text)
  local joins = comes_back(lane, job)
  local front = fronts.open(q, tenant, lane)
  table.insert(front.returned, 1, { job = job, text = text })
  front.left = front.left + 1
  if joins then
    join(q, tenant, lane)
  end
end

-- A delayed job is due: it goes before the fresh ones, behind what came back earlier. Its record stays aside.
function fronts.fall_due(q, tenant, lane, job, text)
  local joins = comes_back(lane, job)
  local front = fronts.open(q, tenant, lane)
  front.due[#front.due + 1] = { job = job, text = text, is_aside = true }
  front.left = front.left + 1
  if joins then
    join(q, tenant, lane)
  end
end

-- The job of an ordered lane has ended: the next may start.
function fronts.release(q, tenant, lane, job)
  if lane.busy == job then
    lane.busy = nil
    if remains(lane) then
      join(q, tenant, lane)
    end
  end
end

local function is_marked_in_action(q, tenant, action, job)
  local _, _, sequence = places.parse(job)
  if not actions.is_marked(q, action, sequence) then
    return false
  end
  tenant.marks = tenant.marks - 1
  actions.unmark(action)
  return true
end

-- A job cancelled while it waited is dropped when a claim meets it.
function fronts.is_marked(q, tenant, lane, job)
  if tenant.marks == 0 then
    return false
  end
  if lane.action then
    return is_marked_in_action(q, tenant, lane.action, job)
  end
  if not redis.call("ZSCORE", q.keys.canceled, job) then
    return false
  end
  tenant.marks = tenant.marks - 1
  note(q, "dropped", job)
  return true
end

local function read_list(q, front)
  if front.at > #front.jobs then
    front.jobs = redis.call("LRANGE", front.key, front.taken, front.taken + STEP - 1)
    front.at = 1
    front.texts = redis.call("HMGET", q.keys.aside, unpack(front.jobs))
  end
end

local function first_of(q, front)
  if front.returned[1] then
    return front.returned[1]
  end
  if front.taken < front.length then
    read_list(q, front)
    return { job = front.jobs[front.at], text = front.texts[front.at], is_aside = true, is_listed = true }
  end
  return front.due[1]
end

local function drop_first(front, first)
  front.left = front.left - 1
  if first.is_listed then
    front.at, front.taken = front.at + 1, front.taken + 1
  else
    table.remove(front.returned[1] == first and front.returned or front.due, 1)
  end
end

-- Answers how many it took, and whether it stopped at one that must wait: a suspect, of which a process has one at a
-- time, or one that costs too much.
function fronts.take(q, tenant, lane, count, taken)
  local front, got = lane.front, 0
  while got < count and front.left > 0 and q.bytes_left > 0 do
    local first = first_of(q, front)
    local is_suspect = record.is_suspect(first.text)
    if is_suspect and q.suspect_taken then
      q.met_suspect = true
      return got, true
    end
    local is_marked = fronts.is_marked(q, tenant, lane, first.job)
    if q.budget and not is_marked then
      if not costs.fits(q, first.text) then
        return got, true
      end
    end
    drop_first(front, first)
    if first.is_aside then
      note(q, "unset_aside", first.job)
    end
    if not is_marked then
      q.suspect_taken = q.suspect_taken or is_suspect
      local at = #taken
      taken[at + 1], taken[at + 2] = first.job, first.text
      q.bytes_left = q.bytes_left - #first.text
      got = got + 1
    end
  end
  return got, false
end

-- All of it goes. What stands in the list has records aside; they are freed in steps, by whoever takes the duty.
function fronts.drop(q, lane)
  local front = lane.front
  for _, due in ipairs(front.due) do
    note(q, "unset_aside", due.job)
    note(q, "dropped", due.job)
  end
  for _, back in ipairs(front.returned) do
    note(q, "dropped", back.job)
  end
  if front.length > front.taken then
    local trash = string.format("%d", queue.tick(q))
    front.trash_key = q.keys.prefix .. "trash:" .. trash
    redis.call("EXISTS", front.trash_key)
    duties.add(q, "free:" .. trash, q.now)
  end
  front.is_dropped, front.left, front.returned, front.due = true, 0, {}, {}
end

function fronts.save(q, tenant, lane)
  local front = lane.front
  if front.is_dropped then
    if front.trash_key then
      redis.call("RENAME", front.key, front.trash_key)
    end
    tenant.front = tenant.front - front.length
    return
  end
  if front.taken > 0 then
    redis.call("LTRIM", front.key, front.taken, -1)
  end
  for i = #front.returned, 1, -1 do
    local back = front.returned[i]
    redis.call("LPUSH", front.key, back.job)
    redis.call("HSET", q.keys.aside, back.job, back.text)
  end
  for _, due in ipairs(front.due) do
    redis.call("RPUSH", front.key, due.job)
  end
  tenant.front = tenant.front - front.taken + #front.returned + #front.due
end

return fronts
