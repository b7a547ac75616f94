-- The queue's own state: a few fields of one hash, read once, changed in memory, written once at the end of a script.
-- The numbers scripts decide by are packed into one field (MessagePack: ten times as fast to read as text).
local pauses = require "pauses"
local decimal = require "decimal"
local waking = require "waking"
local duties = require "duties"
local events = require "events"

local queue = {}

local LEVELS = { "high", "normal", "low" }
queue.LEVELS = LEVELS

-- µs: starts of jobs are counted by slots of time (see pace.lua).
local SLOT = 5000000
queue.SLOT = SLOT

-- The numbers that scripts decide by, in the order in which they are opened. Virtual time counts millionths of a job
-- per tenant of weight 1, weights are in thousandths. Canceling are jobs that run although they are cancelled: while
-- there is none, nobody looks for their marks. Parked are weights of tenants that are; slot and starts say how fast
-- jobs start (see pace.lua); the snapshot is that of congestion. Of the line of each level (see turns.lua): the place
-- of the tenant that came last, the clock when the round began, and how far the rounds have come, in thousandths of a
-- job of weight 1. Each is named, here and below: a loop over their names costs every script a tenth of its time.
local function pack_numbers(q)
  local high, normal, low = q.at.high, q.at.normal, q.at.low
  return cmsgpack.pack(
    q.clock, q.fence, q.turns, q.restarts, q.restarted_at, q.waiting, q.delayed, q.running,
    high.running, normal.running, low.running, high.virtual, normal.virtual, low.virtual,
    high.weights, normal.weights, low.weights, q.canceling,
    q.weights_parked, q.slot, q.starts, q.starts_before, q.starts_earlier, q.active_since, q.snapshot_due,
    high.entry, normal.entry, low.entry, high.round, normal.round, low.round,
    high.reached, normal.reached, low.reached
  )
end

-- nil when the queue is not registered: the store is new, or was emptied.
function queue.open(keys, now)
  local values = redis.call("HMGET", keys.queue, "settings", "server", "state", "pauses", "own_limits", "costs")
  if not values[1] then
    return nil
  end
  local clock, fence, turns, restarts, restarted_at, waiting, delayed, running, running_high, running_normal,
    running_low, virtual_high, virtual_normal, virtual_low, weights_high, weights_normal, weights_low, canceling,
    weights_parked, stored_slot, starts, starts_before, starts_earlier, active_since, snapshot_due, entry_high,
    entry_normal, entry_low, round_high, round_normal, round_low, reached_high, reached_normal, reached_low =
    cmsgpack.unpack(values[3] or "")
  local slot = math.floor(now / SLOT)
  -- All that a claim will need stands here from the start, and no more than 64: a table that grows is made anew, and a
  -- larger one costs every script.
  local q = {
    keys = keys, now = now, settings = cmsgpack.unpack(values[1]), server = values[2], counts = {},
    stored_state = values[3], has_own_limits = values[5] ~= false,
    has_own_slots = values[5] == "slots" or values[5] == "quota", has_own_quota = values[5] == "quota",
    -- Some job has cost more than one permit: until then nobody looks at what they cost.
    has_costs = values[6] ~= false, budget = nil,
    -- Whether `server` is the one this very script runs on, and whether that is to be noted.
    is_server_met = false, server_changed = false, group = nil,
    claim = nil, limits = nil, tenants = nil, runs = nil, lines = nil, ended = nil, stale = nil, moves = nil,
    bytes_left = 0, suspect_taken = false, met_suspect = false, lanes = nil,
    clock = clock or 0, fence = fence or 0, turns = turns or 0, restarts = restarts or 0,
    restarted_at = restarted_at or 0, waiting = waiting or 0, delayed = delayed or 0, running = running or 0,
    canceling = canceling or 0, weights_parked = weights_parked or 0, slot = stored_slot or 0, starts = starts or 0,
    starts_before = starts_before or 0, starts_earlier = starts_earlier or 0, active_since = active_since or 0,
    snapshot_due = snapshot_due or 0, slot_now = slot, slot_start = slot * SLOT,
    at = {
      high = {
        running = running_high or 0, virtual = virtual_high or 0, weights = weights_high or 0,
        entry = entry_high or 0, round = round_high or 0, reached = reached_high or 0,
      },
      normal = {
        running = running_normal or 0, virtual = virtual_normal or 0, weights = weights_normal or 0,
        entry = entry_normal or 0, round = round_normal or 0, reached = reached_normal or 0,
      },
      low = {
        running = running_low or 0, virtual = virtual_low or 0, weights = weights_low or 0,
        entry = entry_low or 0, round = round_low or 0, reached = reached_low or 0,
      },
    },
  }
  if values[4] then
    pauses.open(q, values[4])
  end
  return q
end

-- Whether it is still the queue that the caller has registered. Not where the store was emptied since then, and
-- somebody else has made it known again: without what the caller declares. A caller that registers nothing does not say
-- since when it knows the queue, and an older version has not noted it.
function queue.is_as_registered(q, known_since)
  local since = q.settings.known_since
  return not since or since == known_since or known_since == ""
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
  local state = pack_numbers(q)
  if state ~= q.stored_state then
    changes[1], changes[2] = "state", state
  end
  if q.pauses_changed then
    changes[#changes + 1] = "pauses"
    changes[#changes + 1] = pauses.stored(q)
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
      redis.call("HINCRBY", q.keys.queue, name, decimal.of(amount))
    end
  end
  if q.told then
    waking.save_told(q)
  end
  if q.duties then
    duties.save(q)
  end
  if q.events then
    events.save(q)
  end
end

return queue
