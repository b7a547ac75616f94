-- Where a job is, from its key alone: aside, in its lane's list, claimed, dead, cancelled, or ended.
local places = require "places"
local record = require "record"
local letter_text = require "letter_text"
local actions = require "actions"
local ids = require "ids"

local finding = {}

-- Leases looked through at once for a running job: there are about as many as there are claims in flight.
local LEASES = 2000

-- Whether a job can have had the number: an action knows its first, a queue since when it has given any.
local function may_be_given(q, sequence, action)
  local first = action and action.first or redis.call("HGET", q.keys.queue, "since")
  return not first or tonumber(sequence) >= tonumber(first)
end

local function in_list(q, level, lane, sequence, tenant, job, action)
  -- A leading zero: a job submitted with a delay, which never stands in the list.
  if string.byte(sequence) == 48 then
    return nil
  end
  local next_sequence
  if places.action_of(lane) then
    next_sequence = action.next
  elseif lane == "default" then
    local packed = redis.call("HGET", q.keys.prefix .. "tenant:" .. tenant, level)
    next_sequence = packed and select(2, cmsgpack.unpack(packed))
  else
    next_sequence = redis.call("HGET", q.keys.prefix .. "lanes:" .. tenant, level .. ":" .. lane)
  end
  if not next_sequence then
    return nil
  end
  local key = q.keys.prefix .. "lane:" .. level .. ":" .. lane .. ":" .. tenant
  local length = redis.call("LLEN", key)
  local at = tonumber(sequence) - (tonumber(next_sequence) - length)
  if at >= length then
    return nil
  end
  if at < 0 then
    return nil, may_be_given(q, sequence, action) and job or nil
  end
  return redis.call("LINDEX", key, at), nil, at
end

-- Among the leases that run out at `from` or later, in that order. The last answer is where to go on when there are
-- more of them: by the instant, since positions change while nobody looks.
local function claimed(q, job, from)
  local found = redis.call("ZRANGEBYSCORE", q.keys.leases, from, "+inf", "WITHSCORES", "LIMIT", 0, LEASES)
  for i = 1, #found, 2 do
    local fence, client = string.match(found[i], "^(%d+):(.*)$")
    local value = redis.call("HGET", q.keys.prefix .. "claim:" .. fence, job)
    if value then
      return record.of_claimed(value), client, fence, nil
    end
  end
  if #found < 2 * LEASES then
    return nil, nil, nil, nil
  end
  local last = found[#found]
  return nil, nil, nil, last == from and "(" .. last or last
end

-- The job's action and whether a mark says that it was cancelled while it waited; nil for a job of no action.
local function of_action(q, found)
  if not places.action_of(found.lane) then
    return nil
  end
  local action = actions.of_lane(q, found.tenant, found.lane, found.sequence)
  return action, actions.is_marked(q, action, found.sequence)
end

-- An action that ended early took with it what still stood aside, to be dropped when it is due, and the rest of its
-- list.
local function is_dropped(action, found)
  if found.text then
    return actions.is_over(action)
  end
  local is_listed = string.byte(found.sequence) ~= 48
  return is_listed and not action.is_gone and action.dropped > 0 and tonumber(found.sequence) >= action.dropped
    and tonumber(found.sequence) < action.next
end

-- { state, text, … }: state is waiting, delayed, running, failed, canceled or succeeded, or "again": it may run under a
-- lease that nobody has looked at yet, so `cursor` is to be given as `leases_from`, which is "-inf" at first. nil for a
-- job never seen, or seen too long ago. `is_known` says that the job exists because its id is in the index.
function finding.find(q, job, is_known, leases_from)
  local level, lane, sequence, tenant = places.parse(job)
  if not level then
    return nil
  end
  local found = { job = job, level = level, lane = lane, sequence = sequence, tenant = tenant }
  local action, is_marked = of_action(q, found)
  local mark = is_marked or redis.call("ZSCORE", q.keys.canceled, job)
  found.text = redis.call("HGET", q.keys.aside, job) or nil
  if action and is_dropped(action, found) then
    found.state = "canceled"
    return found
  end
  if found.text then
    found.due = redis.call("ZSCORE", q.keys.delayed, job) or nil
    found.state = mark and "canceled" or found.due and "delayed" or "waiting"
    return found
  end
  local was_numbered
  found.text, was_numbered, found.at = in_list(q, level, lane, sequence, tenant, job, action)
  if found.text then
    found.state = mark and "canceled" or "waiting"
    return found
  end
  local letter = redis.call("HGET", q.keys.dead_jobs, job)
  if letter then
    local died, reason, text = letter_text.parse(letter)
    -- Past its time nothing is shown of it but how it ended.
    local is_shown = not died or tonumber(died) * 1000 > q.now - q.settings.keep_dead
    found.text = is_shown and text or nil
    found.state, found.reason = "failed", reason
    return found
  end
  found.text, found.client, found.fence, found.cursor = claimed(q, job, leases_from)
  if found.text then
    found.state = "running"
  elseif found.cursor then
    found.state = "again"
  elseif mark then
    found.state = "canceled"
  elseif was_numbered or is_known then
    found.state = "succeeded"
  else
    return nil
  end
  return found
end

-- By its key, or by its tenant, the name of its action (or empty) and the digest of the id given to it where that is
-- not empty.
function finding.at(q, job, tenant, action_name, digest, leases_from)
  if digest == "" then
    return finding.find(q, job, false, leases_from)
  end
  local action
  if action_name ~= "" then
    action = actions.load(q, tenant, action_name)
    if not action then
      return nil
    end
  end
  local place = ids.find(q, ids.open(q, action), digest)
  return place and finding.find(q, place .. ":" .. tenant, true, leases_from)
end

return finding
