-- Time is the server's, in whole microseconds; a double holds them exactly until the year 2255.
-- An injected `now` exists for tests and simulation only.
local time = {}

-- Later than any instant: what waits for an event rather than for a moment.
time.NEVER = 9e15

function time.now(injected)
  if injected ~= "" then
    return tonumber(injected)
  end
  local t = redis.call("TIME")
  return tonumber(t[1]) * 1000000 + tonumber(t[2])
end

return time
