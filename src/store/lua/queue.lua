-- The queue's own state: a few fields of one hash, read once, changed in memory, written once at the end of a script.
-- The numbers scripts decide by are packed into one field (MessagePack: ten times as fast to read as text).
local queue = {}

local LEVELS = { "high", "normal", "low" }
queue.LEVELS = LEVELS

-- In the order in which they are packed. Virtual time counts millionths of a job per tenant of weight 1, weights are in
-- thousandths.
local NUMBERS = {
  "clock", "fence", "turns", "restarts", "restarted_at", "waiting", "delayed", "running",
  "running:high", "running:normal", "running:low",
  "virtual:high", "virtual:normal", "virtual:low", "weights:high", "weights:normal", "weights:low",
  -- Jobs that run although they are cancelled: while there is none, nobody looks for their marks.
  "canceling",
  -- Weights of tenants that are parked; how fast jobs start (see pace.lua); when congestion is recorded next.
  "weights:parked", "slot", "starts", "starts_before", "starts_earlier", "active_since", "snapshot_due",
  -- Of the line of each level (see turns.lua): the place of the tenant that came last, the clock when the round began,
  -- and how far the rounds have come, in thousandths of a job of a tenant of weight 1.
  "entry:high", "entry:normal", "entry:low", "round:high", "round:normal", "round:low",
  "reached:high", "reached:normal", "reached:low",
}
-- Rarely set, so packed apart.
local PAUSES = {
  "paused", "paused:high", "paused:normal", "paused:low", "resumed", "resumed:high", "resumed:normal", "resumed:low",
}

-- µs: starts of jobs are counted by slots of time (see pace.lua).
local SLOT = 5000000
queue.SLOT = SLOT

local function unpack_into(q, names, packed)
  local values = { cmsgpack.unpack(packed) }
  for i = 1, #names do
    q[names[i]] = values[i] or 0
  end
end

local function pack(q, names)
  local values = {}
  for i = 1, #names do
    values[i] = q[names[i]]
  end
  return cmsgpack.pack(unpack(values))
end

-- nil when the queue is not registered: the store is new, or was emptied.
function queue.open(keys, now)
  local values = redis.call("HMGET", keys.queue, "settings", "server", "state", "pauses", "own_limits", "costs")
  if not values[1] then
    return nil
  end
  local slot = math.floor(now / SLOT)
  -- Every number stands here from the start: a table that grows field by field is made anew again and again.
  local q = {
    keys = keys, now = now, settings = cmsgpack.unpack(values[1]), server = values[2], counts = {},
    stored_state = values[3], has_own_limits = values[5] ~= false,
    has_own_slots = values[5] == "slots" or values[5] == "quota", has_own_quota = values[5] == "quota",
    -- Some job has cost more than one permit: until then nobody looks at what they cost.
    has_costs = values[6] ~= false, budget = nil, server_changed = false, pauses_changed = false,
    -- Whether `server` is the one this very script runs on.
    is_server_met = false, group = nil,
    claim = nil, limits = nil, tenants = nil, runs = nil, lines = nil, ended = nil, stale = nil, moves = nil,
    bytes_left = 0, suspect_taken = false, met_suspect = false, lanes = nil,
    clock = 0, fence = 0, turns = 0, restarts = 0, restarted_at = 0, waiting = 0, delayed = 0, running = 0,
    ["running:high"] = 0, ["running:normal"] = 0, ["running:low"] = 0,
    ["virtual:high"] = 0, ["virtual:normal"] = 0, ["virtual:low"] = 0,
    ["weights:high"] = 0, ["weights:normal"] = 0, ["weights:low"] = 0, canceling = 0,
    ["weights:parked"] = 0, slot = 0, starts = 0, starts_before = 0, starts_earlier = 0, active_since = 0,
    snapshot_due = 0, ["entry:high"] = 0, ["entry:normal"] = 0, ["entry:low"] = 0,
    ["round:high"] = 0, ["round:normal"] = 0, ["round:low"] = 0,
    ["reached:high"] = 0, ["reached:normal"] = 0, ["reached:low"] = 0, slot_now = slot, slot_start = slot * SLOT,
    paused = 0, ["paused:high"] = 0, ["paused:normal"] = 0, ["paused:low"] = 0,
    resumed = 0, ["resumed:high"] = 0, ["resumed:normal"] = 0, ["resumed:low"] = 0,
  }
  if values[3] then
    unpack_into(q, NUMBERS, values[3])
  end
  if values[4] then
    unpack_into(q, PAUSES, values[4])
  end
  return q
end

-- A server other than the one that granted before may have lost its last grants: limits close for a while.
function queue.notice_server(q, server)
  q.is_server_met = true
  if q.server == server then
    return
  end
  if q.server then
    q.restarts = q.restarts + 1
    q.restarted_at = q.now
  end
  q.server = server
  q.server_changed = true
end

-- µs by which the clock moves on with a turn, at least: room for tenants that come into line right before it. Up to
-- 15,000 turns a second leave the clock at the time of day.
queue.TURN = 64

-- The queue's clock: never goes back, and moves on with every question, so that no two answers are the same.
function queue.tick(q, step)
  local clock = q.clock + (step or 1)
  if clock < q.now then
    clock = q.now
  end
  q.clock = clock
  return clock
end

function queue.next_fence(q)
  local fence = q.fence + 1
  if fence < q.now then
    fence = q.now
  end
  q.fence = fence
  return fence
end

function queue.count(q, name, amount)
  q.counts[name] = (q.counts[name] or 0) + amount
end

-- With it goes what was noted for others on the way: messages to clients, duties, events.
function queue.save(q)
  local changes = {}
  local state = pack(q, NUMBERS)
  if state ~= q.stored_state then
    changes[1], changes[2] = "state", state
  end
  if q.pauses_changed then
    changes[#changes + 1] = "pauses"
    changes[#changes + 1] = pack(q, PAUSES)
  end
  if q.server_changed then
    changes[#changes + 1] = "server"
    changes[#changes + 1] = q.server
  end
  if #changes > 0 then
    redis.call("HSET", q.keys.queue, unpack(changes))
  end
  for name, amount in pairs(q.counts) do
    if amount ~= 0 then
      redis.call("HINCRBY", q.keys.queue, name, amount)
    end
  end
  if q.told then
    local waking = require "waking"
    waking.save_told(q)
  end
  if q.duties then
    local duties = require "duties"
    duties.save(q)
  end
  if q.events then
    local events = require "events"
    events.save(q)
  end
end

return queue
