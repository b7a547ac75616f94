-- A job's record: "<history>\n<rest>". The rest (created, type, given id, options, payload) is the caller's and never
-- read here. A fresh job has an empty history; else it is "attempts,stalls,throttles,unknown since ms,reason,error".
local record = {}

local find, sub, match, byte = string.find, string.sub, string.match, string.byte
local LINE_BREAK, CARET = 10, 94

-- Of what a claim holds under a job: its record, and the level it stood on where that is not its own.
function record.of_claimed(value)
  if byte(value) ~= CARET then
    return value, nil
  end
  local stood_on, text = match(value, "^%^(%l+)\n(.*)$")
  return text, stood_on
end

local function is_fresh(text)
  return byte(text) == LINE_BREAK
end

-- attempts, stalls, throttles, unknown_since, reason, error
function record.history(text)
  if is_fresh(text) then
    return 0, 0, 0, 0, "", ""
  end
  local attempts, stalls, throttles, unknown_since, reason, error =
    match(text, "^(%d+),(%d+),(%d+),(%d+),([^,\n]*),([^\n]*)\n")
  return tonumber(attempts), tonumber(stalls), tonumber(throttles), tonumber(unknown_since), reason, error
end

function record.with_history(text, attempts, stalls, throttles, unknown_since, reason, error)
  local head = string.format("%d,%d,%d,%.0f,%s,%s", attempts, stalls, throttles, unknown_since, reason, error)
  return head .. sub(text, (find(text, "\n", 1, true)))
end

-- A suspect has outlived two leases: it may be what kills its workers. One may be the fault of a neighbour.
function record.is_suspect(text)
  if is_fresh(text) then
    return false
  end
  local _, stalls = record.history(text)
  return stalls > 1
end

return record
