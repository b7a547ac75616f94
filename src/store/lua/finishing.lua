-- What a worker has finished, as it tells it with its next claim.
local queue = require "queue"
local running = require "running"

local finishing = {}

-- The jobs that ended, by the fence of their claim: they leave it when all is read.
local function ended_of(q, fence)
  local ended = q.ended[fence]
  if not ended then
    ended = { claim_key = q.keys.prefix .. "claim:" .. fence, jobs = {} }
    q.ended[fence] = ended
  end
  return ended
end

-- A job that succeeded before its worker heard that it was cancelled.
local function unmark(q, jobs)
  local moves = require "moves"
  for _, job in ipairs(jobs) do
    moves.unmark(q, job)
  end
end

-- The jobs of one claim that succeeded, tenant by tenant. When the claim still holds as many jobs as its worker has not
-- told of before, they are all the worker's; else each is looked for. Answers where the next claim starts.
local function succeed(q, list, at, position)
  local fence, untold, count = list[at], tonumber(list[at + 1]), tonumber(list[at + 2])
  local ended = ended_of(q, fence)
  local is_whole = redis.call("HLEN", ended.claim_key) == untold
  local first, jobs = at + 3, ended.jobs
  at = first + count
  if is_whole then
    for i = first, first + count - 1 do
      jobs[#jobs + 1] = list[i]
    end
  end
  for _ = 1, tonumber(list[at]) do
    local name, standing, of_group = list[at + 1], list[at + 2], tonumber(list[at + 3])
    at = at + 3
    local ours = of_group
    if not is_whole then
      ours = 0
      for i = first, first + of_group - 1 do
        if redis.call("HEXISTS", ended.claim_key, list[i]) == 1 then
          jobs[#jobs + 1] = list[i]
          ours = ours + 1
        else
          q.stale[#q.stale + 1] = position + i - first
        end
      end
    end
    first, position = first + of_group, position + of_group
    if ours > 0 then
      running.ends(q, name, standing, ours)
      queue.count(q, "succeeded", ours)
    end
  end
  if q.canceling > 0 then
    unmark(q, jobs)
  end
  return at + 1, position
end

local function finish_others(q, list, from, position)
  local outcomes = require "outcomes"
  local seen = {}
  for i = from, #list, 6 do
    local fence, job = list[i], list[i + 1]
    local ended = ended_of(q, fence)
    local text = redis.call("HGET", ended.claim_key, job)
    if not text or seen[fence .. job] then
      q.stale[#q.stale + 1] = position
    else
      seen[fence .. job] = true
      ended.jobs[#ended.jobs + 1] = job
      text = string.gsub(text, "^%^%l+\n", "")
      outcomes.apply(q, fence, job, list[i + 2], list[i + 3], tonumber(list[i + 4]), list[i + 5], text)
    end
    position = position + 1
  end
end

-- Fills q.ended and q.stale. Positions are counted over the jobs as they stand in the list, from 0.
function finishing.run(q, list, from)
  q.ended, q.stale = {}, {}
  local at, position = from + 1, 0
  for _ = 1, tonumber(list[from]) do
    at, position = succeed(q, list, at, position)
  end
  if list[at] then
    finish_others(q, list, at, position)
  end
end

function finishing.save(q, leases_key, client)
  for fence, ended in pairs(q.ended) do
    if #ended.jobs > 0 then
      redis.call("HDEL", ended.claim_key, unpack(ended.jobs))
    end
    if redis.call("EXISTS", ended.claim_key) == 0 then
      redis.call("ZREM", leases_key, fence .. ":" .. client)
    end
  end
end

return finishing
