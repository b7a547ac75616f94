-- Errors of jobs, as their workers tell them: JSON of ours, with a name, a message and a stack.
local faults = {}

local LONGEST = 200 -- bytes of a message that tell it from others, and that an event carries

-- The first line of the message, so far as it fits in whole characters.
function faults.short(error)
  local line = string.match(cjson.decode(error).message or "", "^[^\n]*")
  local bytes = LONGEST
  while #line > bytes and string.find(line, "^[\128-\191]", bytes + 1) do
    bytes = bytes - 1
  end
  return string.sub(line, 1, bytes)
end

return faults
