-- A job's record: "<history>\n<rest>". The rest (created, type, given id, options, payload) is the caller's and never
-- read here. A fresh job has an empty history; else it is "attempts,stalls,throttles,unknown since ms,reason,error".
local record = {}

local find, sub, match = string.find, string.sub, string.match

function record.is_fresh(text)
  return string.byte(text) == 10
end

-- attempts, stalls, throttles, unknown_since, reason, error
function record.history(text)
  if record.is_fresh(text) then
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
  if record.is_fresh(text) then
    return false
  end
  local _, stalls = record.history(text)
  return stalls > 1
end

return record
