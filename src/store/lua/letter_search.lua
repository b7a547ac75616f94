-- Looks through dead letters, oldest first, for those that a filter wants: a bounded number at once. Those past their
-- time are none.
local expiring = require "expiring"
local letter_text = require "letter_text"
local places = require "places"
local ranks = require "ranks"
local record = require "record"

local letter_search = {}

local function fits_place(job, wanted)
  local _, lane, _, name = places.parse(job)
  return name ~= nil
    and (wanted.tenant == "" or name == wanted.tenant)
    and (wanted.action == "" or places.action_of(lane) == wanted.action)
end

local function fits_error(text, wanted)
  if wanted.error == "" then
    return true
  end
  local _, _, _, _, _, error = record.history(text)
  -- One that is damaged, or none, says nothing.
  local is_read, decoded = pcall(cjson.decode, error)
  local message = is_read and type(decoded) == "table" and decoded.message
  return type(message) == "string" and string.find(message, wanted.error, 1, true) ~= nil
end

local function fits(reason, text, wanted)
  return (wanted.reason == "" or reason == wanted.reason)
    and (wanted.type == "" or string.match(text, "^[^\n]*\n[^\n]*\n([^\n]*)\n") == wanted.type)
    and fits_error(text, wanted)
end

-- The record of a job's letter where it fits; it is read only if its place does.
local function letter_of(q, job, wanted)
  local letter = fits_place(job, wanted) and redis.call("HGET", q.keys.dead_jobs, job)
  if not letter then
    return nil
  end
  local _, reason, text = letter_text.parse(letter)
  return fits(reason, text, wanted) and text or nil
end

-- `wanted` has tenant (its token), type, action, reason and error, each of them "" for any. It looks at letters behind
-- the place `from` (µs) and `after` (job; "" stands before all of that moment) that died at `to` or earlier, and now at
-- the latest, which "" means; at `looks` at most, and takes `most` at most: `take(job, text)` is called for each.
-- Answers {looked, taken, from, after, to}: where to go on, `from` is "" when all were looked at.
function letter_search.each(q, wanted, from, after, to, looks, most, take)
  local dead = q.keys.dead
  -- What dies while it goes on is never looked at: a job that is retried and dies again would be taken for ever.
  if to == "" or tonumber(to) > q.now then
    to = string.format("%d", q.now)
  end
  local past = redis.call("ZCOUNT", dead, "-inf", string.format("%d", expiring.instant(q)))
  local first = math.max(past, ranks.up_to(dead, from, after))
  local stop = redis.call("ZCOUNT", dead, "-inf", to)
  local looked, taken = 0, 0
  if first < stop then
    local found = redis.call("ZRANGE", dead, first, math.min(first + looks, stop) - 1, "WITHSCORES")
    while 2 * looked < #found and taken < most do
      after, from = found[2 * looked + 1], found[2 * looked + 2]
      looked = looked + 1
      local text = letter_of(q, after, wanted)
      if text then
        taken = taken + 1
        take(after, text)
      end
    end
  end
  if first + looked >= stop then
    from, after = "", ""
  end
  return looked, taken, from, after, to
end

-- How many there are, whatever the filter.
function letter_search.count(q)
  return redis.call("ZCOUNT", q.keys.dead, string.format("%d", expiring.instant(q) + 1), "+inf")
end

return letter_search
