-- Ids given by callers, so that the same id submitted again is a no-op: short digests in small hashes, each pointing to
-- its job's place. They are kept for one to two periods (24–48 h) by expiry of whole keys. A period starts with few
-- buckets; each further generation has eight times as many, so that a bucket stays small enough to be stored packed.
local ids = {}

local FIRST_BUCKETS = 128
local PER_BUCKET = 64
local GROWTH = 8

local function period_of(q)
  return math.floor(q.now / (q.settings.keep_ids / 2))
end

local function buckets_of(generation)
  return FIRST_BUCKETS * GROWTH ^ generation
end

-- The generation that a period with so many ids fills now.
local function generation_of(count)
  local generation, room = 0, FIRST_BUCKETS * PER_BUCKET
  while count >= room do
    generation = generation + 1
    room = room + buckets_of(generation) * PER_BUCKET
  end
  return generation
end

local function bucket_key(q, period, generation, digest)
  local bucket = tonumber(string.sub(digest, 1, 6), 16) % buckets_of(generation)
  return string.format("%sids:%.0f:%d:%d", q.keys.prefix, period, generation, bucket)
end

function ids.open(q)
  local period = period_of(q)
  local counts = redis.call("HMGET", q.keys.ids, period, period - 1)
  q.ids = { period = period, count = tonumber(counts[1]) or 0, before = tonumber(counts[2]) or 0, added = {}, new = 0 }
end

-- The place of a known id ("<level>:<lane>:<sequence>"), or nil. Touches the bucket a new id would go to.
function ids.find(q, digest)
  local state = q.ids
  local added = state.added[digest]
  if added then
    return added
  end
  for generation = generation_of(state.count), 0, -1 do
    local place = redis.call("HGET", bucket_key(q, state.period, generation, digest), digest)
    if place then
      return place
    end
  end
  if state.before > 0 then
    for generation = generation_of(state.before), 0, -1 do
      local place = redis.call("HGET", bucket_key(q, state.period - 1, generation, digest), digest)
      if place then
        return place
      end
    end
  end
end

function ids.add(q, digest, place)
  q.ids.added[digest] = place
  q.ids.new = q.ids.new + 1
end

function ids.save(q)
  local state = q.ids
  if state.new == 0 then
    return
  end
  local generation = generation_of(state.count)
  local keep_ms = math.ceil(q.settings.keep_ids / 1000)
  for digest, place in pairs(state.added) do
    local key = bucket_key(q, state.period, generation, digest)
    redis.call("HSET", key, digest, place)
    redis.call("PEXPIRE", key, keep_ms, "NX")
  end
  redis.call("HINCRBY", q.keys.ids, state.period, state.new)
  redis.call("HDEL", q.keys.ids, state.period - 2)
  redis.call("PEXPIRE", q.keys.ids, keep_ms)
end

return ids
