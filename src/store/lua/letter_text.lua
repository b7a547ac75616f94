-- A dead letter as it is stored: "<died at, ms>,<reason>\n<record>". One that is damaged has no instant, the reason of
-- a job that nobody can read, and all of its text as its record, so that no script fails on it.
local letter_text = {}

-- died at (or nil), reason, record
function letter_text.parse(letter)
  local died, reason, text = string.match(letter, "^(%d+),([^\n]*)\n(.*)$")
  if not died then
    return nil, "unreadable", letter
  end
  return died, reason, text
end

return letter_text
