-- Ids given by callers, so that the same id submitted again is a no-op: short digests in small hashes, each pointing to
-- its job's place. Those of an action's jobs are kept with the action; the others in periods, for one to two of them
-- (24–48 h), by expiry of whole keys. A scope starts with few buckets; each further generation has eight times as many,
-- so that a bucket stays small enough to be stored packed.
local ids = {}

local FIRST_BUCKETS = 128
local PER_BUCKET = 64
local GROWTH = 8

local function buckets_of(generation)
  return FIRST_BUCKETS * GROWTH ^ generation
end

-- The generation that a scope with so many ids fills now.
local function generation_of(count)
  local generation, room = 0, FIRST_BUCKETS * PER_BUCKET
  while count >= room do
    generation = generation + 1
    room = room + buckets_of(generation) * PER_BUCKET
  end
  return generation
end

local function bucket_key(q, scope, generation, digest)
  local bucket = tonumber(string.sub(digest, 1, 6), 16) % buckets_of(generation)
  return string.format("%sids:%s:%d:%d", q.keys.prefix, scope, generation, bucket)
end

local function open_period(q)
  local period = math.floor(q.now / (q.settings.keep_ids / 2))
  local counts = redis.call("HMGET", q.keys.ids, period, period - 1)
  q.ids = {
    scope = string.format("%.0f", period), count = tonumber(counts[1]) or 0, added = {}, new = 0,
    keep = q.settings.keep_ids, period = period,
    scope_before = string.format("%.0f", period - 1), count_before = tonumber(counts[2]) or 0,
  }
end

-- The ids among which one is looked for: those of the action, or where there is none those of this period and the last.
function ids.open(q, action)
  if not action then
    if not q.ids then
      open_period(q)
    end
    return q.ids
  end
  if not action.ids then
    -- Not all of its jobs have ids, so that it may have more buckets than it needs.
    action.ids = {
      scope = "@" .. action.tenant .. ":" .. action.name, count = action.total, added = {}, new = 0,
      keep = q.settings.keep_actions, scope_before = nil, count_before = 0,
    }
  end
  return action.ids
end

local function find_in(q, scope, count, digest)
  for generation = generation_of(count), 0, -1 do
    local place = redis.call("HGET", bucket_key(q, scope, generation, digest), digest)
    if place then
      return place
    end
  end
end

-- The place of a known id ("<level>:<lane>:<sequence>"), or nil. Touches the bucket a new id would go to.
function ids.find(q, known, digest)
  local added = known.added[digest]
  if added then
    return added
  end
  local place = find_in(q, known.scope, known.count, digest)
  if not place and known.count_before > 0 then
    place = find_in(q, known.scope_before, known.count_before, digest)
  end
  return place
end

function ids.add(known, digest, place)
  known.added[digest] = place
  known.new = known.new + 1
end

function ids.save(q, known)
  if known.new == 0 then
    return
  end
  local generation = generation_of(known.count)
  local keep_ms = math.ceil(known.keep / 1000)
  for digest, place in pairs(known.added) do
    local key = bucket_key(q, known.scope, generation, digest)
    redis.call("HSET", key, digest, place)
    if known.period then
      redis.call("PEXPIRE", key, keep_ms, "NX")
    else
      redis.call("PEXPIRE", key, keep_ms)
    end
  end
  if known.period then
    redis.call("HINCRBY", q.keys.ids, known.period, known.new)
    redis.call("HDEL", q.keys.ids, known.period - 2)
    redis.call("PEXPIRE", q.keys.ids, keep_ms)
  end
end

return ids
