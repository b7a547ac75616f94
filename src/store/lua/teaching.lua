-- What an answer to a caller without a job teaches the limit it was granted by.
local lessons = require "lessons"
local reservations = require "reservations"

local teaching = {}

-- `permits` are those of the answered call; `pushed` µs for which the upstream pushed back (0: it did not say how long;
-- empty: it did not), `reading` as in lessons, or empty.
function teaching.learn(q, state, member, permits, fence, pushed, reading)
  if state.rule.kind == "quota" then
    reservations.settle(state, member, permits)
    if reading ~= "" then
      lessons.feed(q, state, member, reading)
    end
  end
  if pushed ~= "" then
    lessons.close(q, state, fence, tonumber(pushed))
  end
end

return teaching
