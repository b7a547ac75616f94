-- A job's key names its place: "<level>:<lane>:<sequence>:<tenant>". It is the generated id of a job, and the field
-- under which a job stands wherever it is not in its lane's list. Lanes and tenants are tokens: their ':' is escaped.
local places = {}

local match = string.match

-- level, lane, sequence, tenant
function places.parse(job)
  return match(job, "^(%l+):([^:]*):(%d+):(.*)$")
end

-- An ordered lane runs one job at a time; its token starts with '!'.
function places.is_ordered(lane)
  return string.byte(lane) == 33
end

return places
