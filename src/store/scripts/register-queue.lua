#!lua flags=allow-oom
-- Makes the queue known with the settings its code declares, and the limits it shares with other queues. What the
-- caller does not give stays as others declared it, and what operators changed while running stays on top. Where that
-- makes the limits others than before (a deploy), tenants that these had parked are put back in line, as when an
-- operator changes them.
-- Replies {"registered", since}: when the store came to know the queue; {"again"} if an earlier change of limits is
-- still being carried out (call again), or {"format", stored} when a version wrote the queue that does not work beside
-- the caller's: nothing was done.
local time = require "time"
local queue = require "queue"
local opening = require "opening"
local settings = require "settings"
local lifting = require "lifting"
local tenants = require "tenants"
local events = require "events"
local group = require "group"
local register = require "register_shared"
local queue_key = KEYS[1] -- hash: the queue's state
local ready_high_key = KEYS[2] -- zset: tenant → score
local ready_normal_key = KEYS[3] -- zset: tenant → score
local ready_low_key = KEYS[4] -- zset: tenant → score
local since_high_key = KEYS[5] -- zset: tenant → able to run since
local since_normal_key = KEYS[6] -- zset: tenant → able to run since
local since_low_key = KEYS[7] -- zset: tenant → able to run since
local parked_key = KEYS[8] -- zset: tenant → instant
local unparking_key = KEYS[9] -- zset: tenants parked under limits that have changed
local settings_key = KEYS[10] -- hash: what is declared, what was changed
local idle_key = KEYS[11] -- zset: client → until when it is known to wait
local running_key = KEYS[12] -- hash: tenant → jobs that run
local events_key = KEYS[13] -- stream: what happened
local group_limits_key = KEYS[14] -- hash: limits shared with other queues
local group_queues_key = KEYS[15] -- zset: queues of the group
local limits_key = KEYS[16] -- hash: state of the queue's limits
local now_given = ARGV[1] -- µs; empty: the server's time
local server = ARGV[2] -- id of the server the client is connected to
local declaration = ARGV[3] -- JSON: values, defaults included; which of them are given; limits if they are
local format = ARGV[4] -- number of the format that the caller reads and writes
local knew_since = ARGV[5] -- since when the caller thought that the store knew the queue; empty: it did not know it

local stored_format, since = unpack(redis.call("HMGET", queue_key, "format", "since"))
if stored_format and stored_format ~= format then
  return { "format", stored_format }
end
local now = time.now(now_given)
local q = opening.open(
  now, queue_key, { ready_high_key, ready_normal_key, ready_low_key },
  { since_high_key, since_normal_key, since_low_key }, parked_key, unparking_key,
  {
    idle = idle_key, running = running_key, events = events_key, group_limits = group_limits_key,
    group_queues = group_queues_key,
  }
)
local is_new = not q
local stored = redis.call("HMGET", settings_key, "declared", "changed")
local earlier = q and stored[1] and cjson.decode(stored[1]) or {}
local wanted = cjson.decode(declaration)
local declared = settings.declare(earlier, wanted)
-- A queue from before this was noted has none.
local known_since = since or (is_new and string.format("%d", now) or "0")
-- What was granted is gone with the store: limits close as after a restart, unless they have since.
local has_forgotten = knew_since ~= "" and (knew_since ~= known_since or (is_new and not since))
local is_closed_now = q and has_forgotten and q.restarts == 0
if is_closed_now then
  q.restarts, q.restarted_at = 1, now
end

-- With the restart goes that it was a loss: a call that is answered "again" has closed the limits already.
local function save(opened)
  queue.save(opened)
  if has_forgotten and (is_new or is_closed_now) then
    redis.call("HSET", limits_key, "@lost", string.format("%d", now))
  end
end

local packed = settings.compile(declared, cjson.decode(stored[2] or "{}"), known_since)
if q and not settings.have_same_limits(q.settings, cmsgpack.unpack(packed)) then
  local lift = lifting.open(q)
  group.open_leaving(q, cmsgpack.unpack(packed))
  if not lift.is_left then
    events.add(q, "limits.changed", {})
  end
  tenants.save(q)
  save(q)
  if not lifting.save(q, lift) then
    -- The settings stay as they are until then, so that the next call finds the limits changed as well.
    return { "again" }
  end
  group.save_leaving(q)
elseif is_closed_now then
  save(q)
end

if not settings.is_same(earlier, declared) then
  redis.call("HSET", settings_key, "declared", cjson.encode(declared))
end
redis.call("HSET", queue_key, "settings", packed, "format", format)
if is_new then
  redis.call("HSET", queue_key, "server", server, "since", known_since)
  q = queue.open({ queue = queue_key }, now)
  -- Jobs are numbered by the queue's clock: none has a lower number than this, even if the server's is put back now.
  q.clock = math.max(q.clock, tonumber(known_since) - 1)
  if has_forgotten then
    q.restarts, q.restarted_at = q.restarts + 1, q.now
  end
  save(q)
end
if wanted.shared then
  local own = string.match(queue_key, "}:(.*):queue$")
  register.limits(group_limits_key, wanted.shared, server, now, has_forgotten, "")
  redis.call("ZADD", group_queues_key, "NX", "0", own)
end
return { "registered", known_since }
