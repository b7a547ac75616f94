-- What an action keeps of its jobs that ended: how long they took, why they failed, their results, and which of them
-- are, or were, dead letters. Noted while a script reads, written when it writes.
local faults = require "faults"

local results = {}

local ERRORS_KEPT = 50 -- different errors counted for an action; what comes later is counted as others

local function key_of(start, action)
  return start .. action.tenant .. ":" .. action.name
end

-- What a worker says of jobs that succeeded: attempts, throttles, then duration bucket and count by turns.
function results.measure(action, text)
  if action.is_gone then
    return
  end
  action.durations = action.durations or {}
  local numbers = {}
  for number in string.gmatch(text, "%d+") do
    numbers[#numbers + 1] = number
  end
  action.attempts = action.attempts + tonumber(numbers[1])
  action.throttles = action.throttles + tonumber(numbers[2])
  for i = 3, #numbers, 2 do
    local field = "d" .. numbers[i]
    action.durations[field] = (action.durations[field] or 0) + tonumber(numbers[i + 1])
  end
end

local function known_error(q, action, field)
  return action.messages[field] or redis.call("HGET", key_of(q.keys.prefix .. "stats:", action), field)
end

-- A job has failed for good. `error` is JSON of ours, or empty.
function results.note_failure(q, action, job, reason, error)
  local message = error ~= "" and faults.short(error) or ""
  local field = "e" .. (message ~= "" and message or reason)
  action.messages, action.letters = action.messages or {}, action.letters or {}
  local known = known_error(q, action, field)
  if not known and action.errors >= ERRORS_KEPT then
    field = "o"
    known = known_error(q, action, field)
  end
  if not known then
    action.errors = action.errors + (field == "o" and 0 or 1)
    known = "0\n" .. job
  end
  local count, example = string.match(known, "^(%d+)\n(.*)$")
  action.messages[field] = string.format("%d\n%s", tonumber(count) + 1, example)
  action.letters[#action.letters + 1] = job
end

-- What became of a job, as a line for whoever reads the results. A job has one, the latest.
function results.keep(q, action, sequence, line)
  if action.is_gone or not action.rules.keep_results or line == "" then
    return
  end
  action.results = action.results or {}
  local is_known = redis.call("HEXISTS", key_of(q.keys.prefix .. "results:", action), sequence) == 1
  action.results[#action.results + 1] = { sequence = sequence, line = line, is_known = is_known }
end

local function save_lines(q, action)
  local lines, finished = {}, {}
  for _, result in ipairs(action.results) do
    lines[#lines + 1] = result.sequence
    lines[#lines + 1] = result.line
    if not result.is_known then
      finished[#finished + 1] = result.sequence
    end
  end
  redis.call("HSET", key_of(q.keys.prefix .. "results:", action), unpack(lines))
  if #finished > 0 then
    redis.call("RPUSH", key_of(q.keys.prefix .. "finished:", action), unpack(finished))
  end
end

local function save_statistics(q, action)
  local key = key_of(q.keys.prefix .. "stats:", action)
  for field, count in pairs(action.durations or {}) do
    redis.call("HINCRBY", key, field, count)
  end
  for field, text in pairs(action.messages or {}) do
    redis.call("HSET", key, field, text)
  end
  if action.letters then
    redis.call("RPUSH", key_of(q.keys.prefix .. "letters:", action), unpack(action.letters))
  end
end

-- The last read: the keys that are written.
function results.close(q, action)
  local prefix = q.keys.prefix
  redis.call(
    "EXISTS", key_of(prefix .. "stats:", action), key_of(prefix .. "letters:", action),
    key_of(prefix .. "results:", action), key_of(prefix .. "finished:", action)
  )
end

function results.save(q, action)
  if action.durations or action.messages then
    save_statistics(q, action)
  end
  if action.results then
    save_lines(q, action)
  end
end

-- Results may go before the record, but not after it: they would seem to be of the next action of that name.
function results.expire(q, action, keep_ms)
  redis.call("PEXPIRE", key_of(q.keys.prefix .. "stats:", action), keep_ms)
  redis.call("PEXPIRE", key_of(q.keys.prefix .. "letters:", action), keep_ms)
  local results_ms = math.min(keep_ms, math.ceil(q.settings.keep_results / 1000))
  redis.call("PEXPIRE", key_of(q.keys.prefix .. "results:", action), results_ms)
  redis.call("PEXPIRE", key_of(q.keys.prefix .. "finished:", action), results_ms)
end

return results
