-- Lanes: the lines of one tenant on one level. Fresh jobs stand in the lane's list with contiguous sequences, so that a
-- job's place follows from its number; what came back goes before them (fronts.lua). Lanes with work take turns: one is
-- current, the others wait in the ring (ring.lua).
local queue = require "queue"
local decimal = require "decimal"
local named_lanes = require "named_lanes"
local fronts = require "fronts"
local ring = require "ring"
local costs = require "costs"
local actions = require "actions"

local lanes = {}

local DEFAULT = "default"
-- Records read from a list at once, so that large payloads are not read far beyond the reply's limit.
local STEP = 16
local DIGITS = decimal.SMALL
local NONE = {}

-- Most lines have one lane. `open` is that, `opened` are all by token once there are more.
local function find(line, token)
  local lane = line.open
  if lane and lane.token ~= token then
    line.opened = line.opened or { [lane.token] = lane }
    lane = line.opened[token]
  end
  return lane
end

-- All that were opened stand in one list, to be written.
local function keep(q, line, lane)
  if line.opened then
    line.opened[lane.token] = lane
  else
    line.open = lane
  end
  local all = q.lanes
  if not all then
    all = {}
    q.lanes = all
  end
  all[#all + 1] = lane
end

-- Its list is `key`; the keys of its jobs begin with `start`. There is room for seven more in its table: `was_next`,
-- and of a few lanes action, front, busy, was_busy, is_ordered, lanes_key.
function lanes.open(q, tenant, level, token)
  local line = tenant.at[level]
  local lane = find(line, token)
  if lane then
    return lane
  end
  local start = level .. ":" .. token .. ":"
  local key = q.keys.prefix .. "lane:" .. start .. tenant.name
  local sequence = token == DEFAULT and line.sequence or 0
  lane = {
    tenant = tenant, line = line, level = level, token = token, start = start, key = key,
    length = redis.call("LLEN", key), taken = 0, next = sequence > 0 and sequence or nil,
  }
  if token ~= DEFAULT then
    named_lanes.open(q, tenant, lane)
  end
  if not lane.next and lane.length > 0 then
    -- Whoever kept the number was deleted or evicted: small ones were never given, and are of nothing that is known.
    lane.next = lane.length + 1
  end
  lane.was_next = lane.next
  if tenant.front > 0 then
    fronts.open(q, tenant, lane)
  end
  keep(q, line, lane)
  return lane
end

-- How many jobs the lane holds, in its list and before it.
function lanes.remaining(lane)
  return lane.length - lane.taken + (lane.front and lane.front.left or 0)
end

-- Numbers `count` fresh jobs at the end of the lane and answers the first number. The caller pushes them.
function lanes.append(q, tenant, lane, count)
  local joins = not lane.busy and lanes.remaining(lane) == 0
  lane.next = lane.next or queue.tick(q)
  local first = lane.next
  lane.next = first + count
  lane.length = lane.length + count
  if lane.action then
    lane.action.first = lane.action.first ~= 0 and lane.action.first or first
    lane.action.next = lane.next
  end
  if joins then
    ring.join(q, tenant, lane.level, lane.token)
  end
  return first
end

-- Only a lane that has had its turn goes behind the others: after one that left, the next has not been served yet.
function lanes.rotate(q, tenant, level)
  local line = tenant.at[level]
  if line.lanes > 1 and line.served == line.lane then
    ring.rotate(q, tenant, level, line)
  end
end

-- Whether the job is left where it is: it is marked as gone, or (the second answer) it costs more than the turn and the
-- limits have room for.
local function is_passed_over(q, tenant, lane, job, text)
  if tenant.marks > 0 then
    if fronts.is_marked(q, tenant, lane, job) then
      return true, false
    end
  end
  if q.budget then
    return not costs.fits(q, text), true
  end
  return false, false
end

-- Answers how many it took, and whether it stopped at one that costs too much.
local function take_list(q, tenant, lane, count, taken)
  local before, from, bytes_left = #taken, lane.taken, q.bytes_left
  local at, last_at, is_plain = before, before + 2 * count, tenant.marks == 0 and not q.budget
  local start, stop = lane.start, ":" .. tenant.name
  while at < last_at and from < lane.length and bytes_left > 0 do
    local wanted = (last_at - at) / 2
    local to = from + (wanted < STEP and wanted or STEP)
    local texts = redis.call("LRANGE", lane.key, decimal.of(from), decimal.of(to - 1))
    local digits, last = decimal.split(lane.next - lane.length + from)
    local head = start .. digits
    for i = 1, #texts do
      if bytes_left <= 0 then
        break
      end
      if last == 10 then
        head, last = start .. decimal.split(lane.next - lane.length + from), 0
      end
      local job, text = head .. DIGITS[last] .. stop, texts[i]
      local is_left = false
      if not is_plain then
        local is_costly
        is_left, is_costly = is_passed_over(q, tenant, lane, job, text)
        if is_left and is_costly then
          lane.taken, q.bytes_left = from, bytes_left
          return (at - before) / 2, true
        end
      end
      from, last = from + 1, last + 1
      if not is_left then
        at, bytes_left = at + 2, bytes_left - #text
        taken[at - 1], taken[at] = job, text
      end
    end
  end
  lane.taken, q.bytes_left = from, bytes_left
  return (at - before) / 2, false
end

-- Takes up to `count` jobs of one line into `taken` (job, record, …), from as many of its lanes as it needs.
-- Answers how many, and whether what is left cannot be taken in this claim: a second suspect, one that costs too much,
-- or the reply is full.
function lanes.take(q, tenant, level, count, taken)
  local line = tenant.at[level]
  local got = 0
  while got < count and line.lane do
    local lane = lanes.open(q, tenant, level, line.lane)
    -- A busy one stands here for an earlier action of its name, whose lane was dropped.
    local wanted = lane.is_ordered and (lane.busy and 0 or 1) or count - got
    local before, n, is_held = #taken, 0, false
    if lane.front and lane.front.left > 0 then
      n, is_held = fronts.take(q, tenant, lane, wanted, taken)
    end
    if not (is_held and (lane.is_ordered or q.budget)) then
      local listed, is_costly = take_list(q, tenant, lane, wanted - n, taken)
      n, is_held = n + listed, is_held or is_costly
    end
    got = got + n
    if n > 0 and line.lanes > 1 then
      line.served = line.lane
    end
    if lane.action and n > 0 then
      actions.start(q, lane.action, n)
    end
    local leaves = lanes.remaining(lane) == 0
    if lane.is_ordered and (n > 0 or lane.busy) then
      lane.busy, leaves = lane.busy or taken[before + 1], true
    end
    if leaves then
      ring.leave(q, tenant, level, line)
    elseif is_held or q.bytes_left <= 0 then
      return got, true
    end
  end
  return got, false
end

-- All that waits in the lane goes. The list is unlinked: a million jobs are freed in the background. A lane that waits
-- for its turn is found empty when it comes. A job that an ordered lane waits for gives way to none.
function lanes.drop(q, tenant, lane)
  lane.is_dropped, lane.taken, lane.busy = true, lane.length, nil
  if lane.front then
    fronts.drop(q, lane)
  end
  local line = tenant.at[lane.level]
  if line.lane == lane.token then
    ring.leave(q, tenant, lane.level, line)
  end
end

local function save_lane(q, lane)
  if lane.is_dropped then
    redis.call("UNLINK", lane.key)
  elseif lane.taken > 0 then
    redis.call("LTRIM", lane.key, decimal.of(lane.taken), "-1")
  end
  if lane.front then
    fronts.save(q, lane.tenant, lane)
  end
  if lane.token ~= DEFAULT then
    named_lanes.save(q, lane, lanes.remaining(lane) == 0)
  elseif lane.next ~= lane.was_next then
    lane.line.sequence, lane.line.changed = lane.next, true
  end
end

-- Writes the lanes that were opened; before tenants.save, which writes the counts.
function lanes.save(q)
  local all = q.lanes or NONE
  for i = 1, #all do
    save_lane(q, all[i])
  end
  if q.rings then
    ring.save(q)
  end
end

return lanes
