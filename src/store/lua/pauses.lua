-- When the queue and its levels were paused and resumed: set only while they are so, or once were, and packed apart
-- from the queue's numbers.
local pauses = {}

function pauses.open(q, packed)
  local high, normal, low = q.at.high, q.at.normal, q.at.low
  local function known(instant)
    return instant ~= 0 and instant or nil
  end
  local paused, paused_high, paused_normal, paused_low, resumed, resumed_high, resumed_normal, resumed_low =
    cmsgpack.unpack(packed)
  q.paused, high.paused, normal.paused, low.paused =
    known(paused), known(paused_high), known(paused_normal), known(paused_low)
  q.resumed, high.resumed, normal.resumed, low.resumed =
    known(resumed), known(resumed_high), known(resumed_normal), known(resumed_low)
end

function pauses.stored(q)
  local high, normal, low = q.at.high, q.at.normal, q.at.low
  return cmsgpack.pack(
    q.paused or 0, high.paused or 0, normal.paused or 0, low.paused or 0,
    q.resumed or 0, high.resumed or 0, normal.resumed or 0, low.resumed or 0
  )
end

return pauses
