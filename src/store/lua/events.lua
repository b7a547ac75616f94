-- What happened, for whoever follows the queue: a stream bounded in length and in time. Events are noted while a script
-- reads and written when it writes, in the order they were noted.
local events = {}

local TRIMMED_AT_ONCE = "100"

-- `fields` is name, value, …
function events.add(q, kind, fields)
  q.events = q.events or {}
  q.events[#q.events + 1] = { kind = kind, fields = fields }
end

function events.save(q)
  local most = string.format("%d", q.settings.max_events)
  for _, event in ipairs(q.events) do
    redis.call("XADD", q.keys.events, "MAXLEN", "~", most, "*", "type", event.kind, unpack(event.fields))
  end
  local oldest = string.format("%d", math.max(0, math.floor((q.now - q.settings.keep_events) / 1000)))
  redis.call("XTRIM", q.keys.events, "MINID", "~", oldest, "LIMIT", TRIMMED_AT_ONCE)
end

return events
