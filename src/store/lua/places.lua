-- A job's key names its place: "<level>:<lane>:<sequence>:<tenant>". It is the generated id of a job, and the field
-- under which a job stands wherever it is not in its lane's list. Lanes and tenants are tokens: their ':' is escaped.
local places = {}

local match, byte, sub = string.match, string.byte, string.sub
local ORDERED, OF_ACTION = 33, 64 -- '!' and '@'

-- level, lane, sequence, tenant
function places.parse(job)
  return match(job, "^(%l+):([^:]*):(%d+):(.*)$")
end

-- An ordered lane runs one job at a time; its token starts with '!'.
function places.is_ordered(lane)
  return byte(lane) == ORDERED
end

-- The name of the action whose lane this is; nil for any other lane. Such a token starts with '@', or '!@'.
function places.action_of(lane)
  local first = byte(lane)
  if first == OF_ACTION then
    return sub(lane, 2)
  elseif first == ORDERED and byte(lane, 2) == OF_ACTION then
    return sub(lane, 3)
  end
  return nil
end

return places
