-- A job's record: "<history>\n<rest>". The rest (created, type, given id, options, payload) is the caller's and never
-- read here. A fresh job has an empty history; else it is "attempts,stalls,throttles,since ms,reason,error".
-- Since is when it began to wait for that reason: of a type that nobody knows, when it was first met.
-- A job that costs more than one permit has "*<cost>;" before all that. A record that is damaged counts as that of a
-- fresh job, so that no script fails on it: whoever claims it cannot read it, and makes it a dead letter.
local record = {}

local find, sub, match, byte = string.find, string.sub, string.match, string.byte
local LINE_BREAK, CARET, ASTERISK = 10, 94, 42
local NO_MEMBERS = {}
local LEVELS = { high = true, normal = true, low = true }

-- What a claim holds under a job that stood on another level than its own.
function record.standing_on(level, text)
  return "^" .. level .. "\n" .. text
end

-- What a claim holds under a job that a member of a pool granted. Where a pool of another scope that is called the same
-- is told already, the name has its scope before it.
function record.granted_by(value, level, scope, limit, member)
  local told = limit .. "=" .. member
  local stop = byte(value) == CARET and find(value, "\n", 1, true)
  if not stop then
    return "^" .. level .. "&" .. told .. "\n" .. value
  end
  local before = sub(value, 1, stop - 1)
  if find(before, "&" .. limit .. "=", 1, true) then
    told = scope .. "/" .. told
  end
  return before .. "&" .. told .. sub(value, stop)
end

-- The member of a pool among those that `of_claimed` answers; nil: none is told.
function record.member(members, scope, limit)
  return members[scope .. "/" .. limit] or members[limit]
end

-- Of what a claim holds under a job: its record, the level it stood on if that is told, and by limit the member of a
-- pool that granted it.
function record.of_claimed(value)
  if byte(value) ~= CARET then
    return value, nil, NO_MEMBERS
  end
  local stood_on, told, text = match(value, "^%^(%l+)([^\n]*)\n(.*)$")
  if not LEVELS[stood_on or ""] then
    return value, nil, NO_MEMBERS
  end
  local members = NO_MEMBERS
  if told ~= "" then
    members = {}
    for limit, member in string.gmatch(told, "&([^=]+)=([^&]*)") do
      members[limit] = member
    end
  end
  return text, stood_on, members
end

-- In permits.
function record.cost(text)
  if byte(text) ~= ASTERISK then
    return 1
  end
  return tonumber(match(text, "^%*(%d+);")) or 1
end

-- Where the history begins.
local function start(text)
  return byte(text) == ASTERISK and (find(text, ";", 1, true) or 0) + 1 or 1
end

-- attempts, stalls, throttles, since, reason, error
function record.history(text)
  local from = start(text)
  if byte(text, from) == LINE_BREAK then
    return 0, 0, 0, 0, "", ""
  end
  local attempts, stalls, throttles, since, reason, error =
    match(text, "^(%d+),(%d+),(%d+),(%d+),([^,\n]*),([^\n]*)\n", from)
  if not attempts then
    return 0, 0, 0, 0, "", ""
  end
  return tonumber(attempts), tonumber(stalls), tonumber(throttles), tonumber(since), reason, error
end

function record.with_history(text, attempts, stalls, throttles, since, reason, error)
  local head = string.format("%d,%d,%d,%.0f,%s,%s", attempts, stalls, throttles, since, reason, error)
  local rest = find(text, "\n", 1, true)
  if not rest then
    return head .. "\n" .. text
  end
  return sub(text, 1, start(text) - 1) .. head .. sub(text, rest)
end

-- A suspect has outlived two leases: it may be what kills its workers. One may be the fault of a neighbour.
function record.is_suspect(text)
  if byte(text) == LINE_BREAK then
    return false
  end
  local _, stalls = record.history(text)
  return stalls > 1
end

return record
