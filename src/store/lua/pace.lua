-- How fast jobs start, for congestion.lua to ask. Starts are counted by slots of time: the present one and the two
-- before it. A tenant counts what it receives anyway, so a turn has nothing to add: only the first of a slot looks what
-- the slot before has brought. So all of it stands packed in one field of the tenant, opened when it changes.
local queue = require "queue"

local pace = {}

-- µs. The last ten seconds are two whole slots and a part of the one before them.
local SLOT = queue.SLOT
pace.SLOT = SLOT

-- The slot it was last looked at and what had been received until then; starts in the two slots before; since when it
-- has had work. How long the job waits (ms) that was pushed back last. Starts that count for no job that was done. By
-- how much what was received, which goes by cost, is more than the jobs that were started.
local FORMAT = "<I4dI4I4dI4dd"

function pace.slot_of(now)
  return math.floor(now / SLOT)
end

local function read(packed)
  if packed == "" then
    return {
      slot = 0, received = 0, starts_before = 0, starts_earlier = 0, active_since = 0, backoff = 0, uncounted = 0,
      costs = 0,
    }
  end
  local slot, received, before, earlier, since, backoff, uncounted, costs = struct.unpack(FORMAT, packed)
  return {
    slot = slot, received = received, starts_before = before, starts_earlier = earlier, active_since = since,
    backoff = backoff, uncounted = uncounted, costs = costs,
  }
end

-- Of a tenant; written with it.
function pace.open(tenant)
  local opened = tenant.opened_pace
  if not opened then
    opened = read(tenant.begun_pace or tenant.pace)
    tenant.opened_pace = opened
  end
  return opened
end

-- As it is written.
function pace.stored(tenant)
  local opened = tenant.opened_pace
  if not opened then
    return tenant.begun_pace
  end
  return struct.pack(
    FORMAT, opened.slot, opened.received, opened.starts_before, opened.starts_earlier, opened.active_since,
    opened.backoff, opened.uncounted, opened.costs
  )
end

-- All jobs that the tenant has been given so far.
function pace.received(tenant)
  local count = 0 - pace.open(tenant).costs
  for _, at in pairs(tenant.at) do
    count = count + at.received
  end
  return count
end

-- Into the slot that begins with what has started by now; `starts` of them in the slot it comes from.
local function roll(of, slot, starts)
  local steps = slot - of.slot
  if steps == 1 then
    of.starts_earlier, of.starts_before = of.starts_before, starts
  elseif steps == 2 then
    of.starts_earlier, of.starts_before = starts, 0
  else
    of.starts_earlier, of.starts_before = 0, 0
  end
  of.slot = slot
end

-- The tenant has its first turn of a slot, or enters the line in it.
function pace.roll(q, tenant)
  local opened, slot = pace.open(tenant), q.slot_now
  if opened.slot ~= slot then
    local received = pace.received(tenant)
    roll(opened, slot, received - opened.received)
    opened.received, tenant.is_paced_anew = received, true
  end
end

-- Jobs were started whose cost is so much more than their number.
function pace.discount_cost(tenant, more)
  local opened = pace.open(tenant)
  opened.costs = opened.costs + more
end

-- It has work after it had none: what came before says nothing of how fast it will go. Tenants that are not known yet
-- and come with one call begin alike.
function pace.begin(q, tenant)
  if not tenant.stored_state and not tenant.opened_pace then
    q.begun_pace = q.begun_pace or struct.pack(FORMAT, q.slot_now, 0, 0, 0, q.now, 0, 0, 0)
    tenant.begun_pace = q.begun_pace
    return
  end
  local opened = pace.open(tenant)
  opened.active_since, opened.slot, opened.received = q.now, q.slot_now, pace.received(tenant)
  opened.starts_before, opened.starts_earlier = 0, 0
end

-- The same for the queue, whose numbers are its own.
function pace.begin_queue(q)
  q.active_since, q.slot, q.starts, q.starts_before, q.starts_earlier = q.now, q.slot_now, 0, 0, 0
end

function pace.roll_queue(q)
  roll(q, q.slot_now, q.starts)
  q.starts = 0
end

-- A job that was started is not done: it waits or is delayed again. Jobs that were done are those received that neither
-- run nor are among these; so nobody counts them, and a job can end without its tenant being read.
function pace.discount(tenant, became)
  if became == "waiting" or became == "delayed" then
    local opened = pace.open(tenant)
    opened.uncounted = opened.uncounted + 1
  end
end

-- Starts of the present slot and of the two before it, as they are seen now.
function pace.slots(of, now, starts)
  local seen = { slot = of.slot, starts_before = of.starts_before, starts_earlier = of.starts_earlier }
  local slot = pace.slot_of(now)
  if seen.slot ~= slot then
    roll(seen, slot, starts)
    starts = 0
  end
  return starts, seen.starts_before, seen.starts_earlier
end

return pace
