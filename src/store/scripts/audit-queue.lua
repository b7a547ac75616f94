#!lua flags=allow-oom
-- Looks whether every job outside of lanes is in exactly one place, and whether all counts are what they count: of each
-- tenant delayed and running, of each action, and of the queue. All at once, so that it is exact however busy the queue
-- is; a queue with more than it can look at in a few milliseconds is left to a quieter moment.
-- Replies {"audited", differences}, each {kind, subject, expected, found}; {"skipped", what is too much}, or
-- {"unregistered"}.
local time = require "time"
local queue = require "queue"
local actions = require "actions"
local auditing = require "auditing"
local census = require "census"
local queue_key = KEYS[1] -- hash: the queue's state
local ready_high_key = KEYS[2] -- zset: tenant → score
local ready_normal_key = KEYS[3] -- zset: tenant → score
local ready_low_key = KEYS[4] -- zset: tenant → score
local delayed_key = KEYS[5] -- zset: job → instant
local aside_key = KEYS[6] -- hash: job → record
local leases_key = KEYS[7] -- zset: fence:client → when the lease runs out
local running_key = KEYS[8] -- hash: tenant → jobs that run
local dead_key = KEYS[9] -- zset: job → when it became a dead letter
local dead_jobs_key = KEYS[10] -- hash: job → reason and record
local canceled_key = KEYS[11] -- zset: job → when the mark may be forgotten
local duties_key = KEYS[12] -- zset: duty → when it may be taken
local now_given = ARGV[1] -- µs; empty: the server's time
local repairs = tonumber(ARGV[2]) -- 1: put right what differs, 0: only look
local met, met_from = ARGV, 3 -- list: keys that were met: "tenant:<tenant>" and "claim:<fence>"

-- So many of each can be looked at within a few milliseconds.
local MOST = { delayed = 2000, aside = 4000, leases = 500, running = 2000, dead = 2000, tenants = 1000 }

local q = queue.open({
  prefix = string.sub(queue_key, 1, -6), queue = queue_key, delayed = delayed_key, aside = aside_key,
  leases = leases_key, running = running_key, dead = dead_key, dead_jobs = dead_jobs_key, canceled = canceled_key,
  ready = { high = ready_high_key, normal = ready_normal_key, low = ready_low_key },
}, time.now(now_given))
if not q then
  return { "unregistered" }
end
local sizes = {
  delayed = redis.call("ZCARD", delayed_key), aside = redis.call("HLEN", aside_key),
  leases = redis.call("ZCARD", leases_key), running = redis.call("HLEN", running_key),
  dead = math.max(redis.call("ZCARD", dead_key), redis.call("HLEN", dead_jobs_key)), tenants = #met - met_from + 1,
}
for what, size in pairs(sizes) do
  if size > MOST[what] then
    return { "skipped", what }
  end
end
auditing.open(q, repairs == 1)
census.open(q)
local names, is_known, fences, trash = {}, {}, {}, {}
local function know(name)
  if not is_known[name] then
    is_known[name] = true
    names[#names + 1] = name
  end
end
for i = met_from, #met do
  local kind, name = string.match(met[i], "^(%l+):(.*)$")
  if kind == "tenant" then
    know(name)
  else
    fences[#fences + 1] = name
  end
end
for _, duty in ipairs(redis.call("ZRANGE", duties_key, 0, 1000)) do
  trash[#trash + 1] = string.match(duty, "^free:(.*)$")
end
census.running(q, redis.call("ZRANGE", leases_key, 0, -1), fences)
census.delayed(q, redis.call("ZRANGE", delayed_key, 0, -1))
census.aside(q, redis.call("HKEYS", aside_key), trash)
census.dead(q, redis.call("ZRANGE", dead_key, 0, -1), redis.call("HKEYS", dead_jobs_key))
local c = q.census

-- Of each tenant. What runs of it is counted apart.
local flat, running = redis.call("HGETALL", running_key), {}
for i = 1, #flat, 2 do
  running[flat[i]] = tonumber(flat[i + 1])
  know(flat[i])
end
for name in pairs(c.running) do
  know(name)
end
for name in pairs(c.delayed) do
  know(name)
end
local waiting = 0
for _, name in ipairs(names) do
  local key = q.keys.prefix .. "tenant:" .. name
  local state = redis.call("HGET", key, "state")
  local counts = { cmsgpack.unpack(state or cmsgpack.pack(0, 0, 0, 0, 0)) }
  waiting = waiting + counts[1]
  local delayed, runs = c.delayed[name] or 0, c.running[name] or 0
  if counts[2] ~= delayed then
    auditing.differs(q, "tenant.delayed", name, delayed, counts[2], function()
      counts[2] = delayed
      redis.call("HSET", key, "state", cmsgpack.pack(unpack(counts)))
      redis.call("PERSIST", key)
      redis.call("HDEL", key, "idle")
    end)
  end
  if (running[name] or 0) ~= runs then
    auditing.differs(q, "tenant.running", name, runs, running[name] or 0, function()
      if runs > 0 then
        redis.call("HSET", running_key, name, runs)
      else
        redis.call("HDEL", running_key, name)
      end
    end)
  end
end

-- Of each action that has jobs outside of lanes. What waits is counted by the lane.
for _, counts in pairs(c.actions) do
  local action = counts.action
  if not actions.is_over(action) then
    for _, field in ipairs({ "delayed", "running" }) do
      if action[field] ~= counts[field] then
        local subject = action.tenant .. ":" .. action.name
        auditing.differs(q, "action." .. field, subject, counts[field], action[field], function()
          action[field], action.changed = counts[field], true
        end)
      end
    end
  end
end

-- Of the queue.
auditing.number(q, "queue.waiting", "", q, "waiting", waiting)
auditing.number(q, "queue.delayed", "", q, "delayed", c.all_delayed)
auditing.number(q, "queue.running", "", q, "running", c.all_running)
auditing.number(q, "queue.canceling", "", q, "canceling", c.canceling)
for _, level in ipairs(queue.LEVELS) do
  auditing.number(q, "queue.running." .. level, "", q, "running:" .. level, c.levels[level])
  local weights = 0
  for _, name in ipairs(redis.call("ZRANGE", q.keys.ready[level], 0, -1)) do
    local weight = tonumber(redis.call("HGET", q.keys.prefix .. "tenant:" .. name, "weight") or 1)
    weights = weights + math.floor(weight * 1000 + 0.5)
  end
  auditing.number(q, "queue.weights." .. level, "", q, "weights:" .. level, weights)
end
if q.actions then
  actions.close(q)
end

if auditing.mend(q) then
  if q.actions then
    actions.save(q)
  end
  queue.save(q)
end
return { "audited", q.audit.found }
