-- The queue's own state: one hash, read once, changed in memory, written once at the end of a script.
local queue = {}

local LEVELS = { "high", "normal", "low" }
queue.LEVELS = LEVELS

-- Numbers that scripts decide by. Plain statistics are only ever added to (see queue.count).
local NUMBERS = {
  "clock", "fence", "turns", "restarts", "restarted_at", "waiting", "delayed", "running",
  "running:high", "running:normal", "running:low",
  "virtual:high", "virtual:normal", "virtual:low", "weights:high", "weights:normal", "weights:low",
  "paused", "paused:high", "paused:normal", "paused:low", "resumed", "resumed:high", "resumed:normal", "resumed:low",
}

local FIELDS = { "settings", "server" }
for _, name in ipairs(NUMBERS) do
  FIELDS[#FIELDS + 1] = name
end

-- nil when the queue is not registered: the store is new, or was emptied.
function queue.open(keys, now)
  local values = redis.call("HMGET", keys.queue, unpack(FIELDS))
  if not values[1] then
    return nil
  end
  local settings = cmsgpack.unpack(values[1])
  local q = { keys = keys, now = now, settings = settings, server = values[2], stored = {}, counts = {} }
  for i = 1, #NUMBERS do
    local number = tonumber(values[i + 2]) or 0
    q[NUMBERS[i]] = number
    q.stored[NUMBERS[i]] = number
  end
  return q
end

-- A server other than the one that granted before may have lost its last grants: limits close for a while.
function queue.notice_server(q, server)
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

-- The queue's clock: never goes back, and moves on with every question, so that no two answers are the same.
function queue.tick(q)
  local clock = q.clock + 1
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

function queue.save(q)
  local changes = {}
  for i = 1, #NUMBERS do
    local name = NUMBERS[i]
    if q[name] ~= q.stored[name] then
      changes[#changes + 1] = name
      changes[#changes + 1] = q[name]
    end
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
end

return queue
