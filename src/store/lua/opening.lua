-- Opens a queue for the scripts that change who stands where, from the keys they all declare.
local queue = require "queue"

local opening = {}

-- `ready` and `since` by level; `others` are added as they are. nil when the queue is not registered.
function opening.open(now, queue_key, ready, since, parked_key, unparking_key, others)
  local keys = others
  keys.prefix, keys.queue = string.sub(queue_key, 1, -6), queue_key
  keys.ready = { high = ready[1], normal = ready[2], low = ready[3] }
  keys.since = { high = since[1], normal = since[2], low = since[3] }
  keys.parked, keys.unparking = parked_key, unparking_key
  return queue.open(keys, now)
end

return opening
