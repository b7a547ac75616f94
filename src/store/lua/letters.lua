-- Dead letters that are taken up again or discarded, one or many in a script: what is to be written is noted while the
-- script reads.
local queue = require "queue"
local tenants = require "tenants"
local places = require "places"
local record = require "record"
local actions = require "actions"

local letters = {}

local function opened(q)
  q.letters = q.letters or { taken = {}, aside = {}, due = {}, marked = {} }
  return q.letters
end

local function note(list, ...)
  for _, value in ipairs({ ... }) do
    list[#list + 1] = value
  end
end

-- Payload is the last line of a record; the five before it stay. One that is damaged has no payload to replace.
local function with_payload(text, payload)
  local head = string.match(text, "^[^\n]*\n[^\n]*\n[^\n]*\n[^\n]*\n[^\n]*\n")
  return head and head .. payload or text
end

-- The job runs again as if fresh: due now, so that the next claim puts it at the front of its lane. With another
-- payload where one is given.
function letters.revive(q, job, text, payload)
  local noted = opened(q)
  local level, lane, sequence, name = places.parse(job)
  local tenant, revived = tenants.load(q, name), job
  local action = actions.of_lane(q, name, lane, sequence)
  if action and (actions.is_over(action) or action.state == "AGGREGATING") then
    -- Its action has ended and stays as it ended: the job runs again by itself. Under its old key it would seem to
    -- have succeeded.
    revived = string.format("%s:default:0%.0f:%s", level, queue.tick(q), name)
    note(noted.marked, job)
  elseif action then
    actions.move(action, "failed", "delayed", 1)
  end
  text = record.with_history(text, 0, 0, 0, 0, "retry", "")
  note(noted.taken, job)
  note(noted.aside, revived, payload and with_payload(text, payload) or text)
  note(noted.due, string.format("%d", q.now), revived)
  tenant.delayed, q.delayed, tenant.total = tenant.delayed + 1, q.delayed + 1, tenant.total + 1
  queue.count(q, "revived", 1)
end

-- The job is gone. Without a mark it would seem to have succeeded: a job that is nowhere has.
function letters.discard(q, job)
  local noted = opened(q)
  note(noted.taken, job)
  note(noted.marked, job)
  queue.count(q, "discarded", 1)
end

-- Before the tenants and the queue, which write the counts.
function letters.save(q)
  local noted, keys = opened(q), q.keys
  if #noted.taken == 0 then
    return
  end
  if #noted.aside > 0 then
    redis.call("HSET", keys.aside, unpack(noted.aside))
    redis.call("ZADD", keys.delayed, unpack(noted.due))
  end
  local forgotten_at = string.format("%d", q.now + q.settings.keep_ids)
  for _, job in ipairs(noted.marked) do
    redis.call("ZADD", keys.canceled, forgotten_at, job)
  end
  redis.call("ZREM", keys.dead, unpack(noted.taken))
  redis.call("HDEL", keys.dead_jobs, unpack(noted.taken))
end

return letters
