-- Looks through dead letters, oldest first, for those that a filter wants: a bounded number at once. Those past their
-- time are none.
local expiring = require "expiring"
local letter_text = require "letter_text"
local places = require "places"
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

-- `wanted` has tenant (its token), type, action, reason and error, each of them "" for any. It looks at letters that
-- died from `from` (µs) to `to` ("": now), without the first `skip` of that first moment; at `looks` at most, and takes
-- `most` at most: `take(job, text)` is called for each, and answers whether the letter is gone with that.
-- Answers {looked, taken, from, skip, to}: where to go on, `from` is "" when all were looked at.
function letter_search.each(q, wanted, from, skip, to, looks, most, take)
  local oldest = expiring.instant(q) + 1
  if tonumber(from) == nil or tonumber(from) < oldest then
    from, skip = string.format("%d", oldest), 0
  end
  to = to ~= "" and to or string.format("%d", q.now)
  local found = redis.call("ZRANGEBYSCORE", q.keys.dead, from, to, "WITHSCORES", "LIMIT", skip, looks)
  local looked, taken = 0, 0
  for i = 1, #found, 2 do
    if taken >= most then
      break
    end
    local job, died = found[i], found[i + 1]
    local text = letter_of(q, job, wanted)
    looked = looked + 1
    if died ~= from then
      from, skip = died, 0
    end
    local is_gone = false
    if text then
      taken, is_gone = taken + 1, take(job, text)
    end
    -- What is gone is there no longer when it goes on.
    if not is_gone then
      skip = skip + 1
    end
  end
  if looked == #found / 2 and looked < looks then
    from, skip = "", 0
  end
  return looked, taken, from, skip, to
end

-- How many there are, whatever the filter.
function letter_search.count(q)
  return redis.call("ZCOUNT", q.keys.dead, string.format("%d", expiring.instant(q) + 1), "+inf")
end

return letter_search
