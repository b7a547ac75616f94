-- Whole numbers as text, for commands. Redis writes a Lua number that is passed to a command with all its digits as a
-- floating-point number, which costs about a microsecond; most of those that scripts pass are small.
local decimal = {}

local SMALL = { "1", "2", "3", "4", "5", "6", "7", "8", "9", "10", "11", "12", "13", "14", "15", "16", [0] = "0" }
local format, floor = string.format, math.floor

function decimal.of(number)
  return SMALL[number] or format("%d", number)
end

-- All digits but the last, and the last: of numbers that follow each other only that changes.
function decimal.split(number)
  return format("%d", floor(number / 10)), number % 10
end

decimal.SMALL = SMALL

return decimal
