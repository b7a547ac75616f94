-- What a worker has finished, as it tells it with its next claim.
local queue = require "queue"
local running = require "running"
local moves = require "moves"
local actions = require "actions"
local results = require "results"
local places = require "places"
local outcomes = require "outcomes"
local lessons = require "lessons"

local finishing = {}

-- The jobs that ended, by the fence of their claim: they leave it when all is read. `is_all`: it has no others, and
-- goes as a whole.
local function ended_of(q, fence)
  local ended = q.ended[fence]
  if not ended then
    ended = { claim_key = q.keys.prefix .. "claim:" .. fence, jobs = {}, is_all = false }
    q.ended[fence] = ended
  end
  return ended
end

-- A job that succeeded before its worker heard that it was cancelled.
local function unmark(q, jobs)
  for _, job in ipairs(jobs) do
    moves.unmark(q, job)
  end
end

-- Adds the jobs of a group that are still in the claim to those that ended and answers how many; the others are stale.
local function take_group(q, ended, list, first, count, position, is_whole)
  local jobs, ours = ended.jobs, 0
  for i = first, first + count - 1 do
    if is_whole or redis.call("HEXISTS", ended.claim_key, list[i]) == 1 then
      jobs[#jobs + 1] = list[i]
      ours = ours + 1
    else
      q.stale[#q.stale + 1] = position + i - first
    end
  end
  return ours
end

-- What their worker says of an action's jobs: measures of all of them, then as many results as jobs, or none. Answers
-- where the next group starts.
local function succeed_in_action(q, name, lane, ended, ours, list, first, at)
  local _, _, sequence_of_first = places.parse(list[first])
  local action, lines = actions.of_lane(q, name, lane, sequence_of_first), tonumber(list[at + 1])
  if ours > 0 then
    actions.finish(q, action, "succeeded", ours)
    results.measure(action, list[at])
  end
  local next_ours = #ended.jobs - ours + 1
  for i = 0, lines - 1 do
    if list[first + i] == ended.jobs[next_ours] then
      local _, _, sequence = places.parse(list[first + i])
      results.keep(q, action, sequence, list[at + 2 + i])
      next_ours = next_ours + 1
    end
  end
  return at + 2 + lines
end

-- The jobs of one claim that succeeded, group by group: a group is of one tenant, level and action; each job of it cost
-- one permit and no pool granted it (the others are told of one by one). When the claim
-- still holds as many jobs as its worker has not told of before, they are all the worker's; else each is looked for.
-- A worker that tells of a whole claim does not name its jobs. Answers where the next claim starts; nil when the jobs
-- must be named: the claim is not what the worker takes it for, or one of its jobs may be cancelled.
local function succeed(q, list, at, position)
  local fence, untold, count, named = list[at], tonumber(list[at + 1]), tonumber(list[at + 2]), tonumber(list[at + 3])
  local ended = ended_of(q, fence)
  local is_whole = redis.call("HLEN", ended.claim_key) == untold
  ended.is_all = is_whole and count == untold
  if named < count and (not ended.is_all or q.canceling > 0) then
    return nil
  end
  local first, succeeded = at + 4, 0
  at = first + named + 1
  for _ = 1, tonumber(list[at - 1]) do
    local name, standing, lane, of_group = list[at], list[at + 1], list[at + 2], tonumber(list[at + 3])
    local ours = of_group
    if named > 0 then
      ours = take_group(q, ended, list, first, of_group, position, is_whole)
    end
    at = at + 4
    if ours > 0 then
      running.ends(q, name, standing, ours, ours, nil)
      succeeded = succeeded + ours
    end
    if lane ~= "" then
      at = succeed_in_action(q, name, lane, ended, ours, list, first, at)
    end
    first, position = first + of_group, position + of_group
  end
  queue.count(q, "succeeded", succeeded)
  if q.canceling > 0 then
    unmark(q, ended.jobs)
  end
  return at, position
end

local function finish_others(q, list, from, position)
  local seen = {}
  for i = from, #list, 7 do
    local fence, job = list[i], list[i + 1]
    local ended = ended_of(q, fence)
    local held = redis.call("HGET", ended.claim_key, job)
    if not held or seen[fence .. job] then
      q.stale[#q.stale + 1] = position
    else
      seen[fence .. job] = true
      ended.jobs[#ended.jobs + 1] = job
      outcomes.apply(q, fence, job, list[i + 2], list[i + 3], tonumber(list[i + 4]), list[i + 5], held, list[i + 6])
    end
    position = position + 1
  end
end

-- Before the claims stand lessons: how many, then each.
local function lessons_of(list, from)
  local count = tonumber(list[from])
  if count == 0 then
    return 0, from + 1
  end
  return count, from + 1 + count * lessons.WIDTH
end

-- Fills q.ended and q.stale. Positions are counted over the jobs as they stand in the list, from 0. Answers whether it
-- could: false when jobs must be named.
function finishing.run(q, list, from)
  q.ended, q.stale = {}, {}
  local lesson_count, claims_at = lessons_of(list, from)
  local at, position = claims_at + 1, 0
  for _ = 1, tonumber(list[claims_at]) do
    at, position = succeed(q, list, at, position)
    if not at then
      return false
    end
  end
  if list[at] then
    finish_others(q, list, at, position)
  end
  if lesson_count > 0 then
    lessons.apply(q, list, from + 1, lesson_count)
  end
  return true
end

function finishing.save(q, leases_key, client)
  for fence, ended in pairs(q.ended) do
    if ended.is_all then
      redis.call("DEL", ended.claim_key)
    elseif #ended.jobs > 0 then
      redis.call("HDEL", ended.claim_key, unpack(ended.jobs))
    end
    if ended.is_all or redis.call("EXISTS", ended.claim_key) == 0 then
      redis.call("ZREM", leases_key, fence .. ":" .. client)
    end
  end
end

return finishing
