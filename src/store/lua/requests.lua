-- Every mutating call carries the client's request number. A repeated one is answered from here and changes nothing:
-- the client re-sends when a reply was lost. The last 16 of a client are remembered, for a minute.
local decimal = require "decimal"

local requests = {}

local REMEMBERED = 16
local FOR_MS = "60000"

-- The reply given before, or nil.
function requests.recall(client_key, request)
  local found = redis.call("HGET", client_key, decimal.of(request % REMEMBERED))
  if not found then
    return nil
  end
  local number, reply = string.match(found, "^(%d+)\n(.*)$")
  if tonumber(number) ~= request then
    return nil
  end
  return cmsgpack.unpack(reply)
end

function requests.remember(client_key, request, reply)
  local text = string.format("%d\n", request) .. cmsgpack.pack(reply)
  redis.call("HSET", client_key, decimal.of(request % REMEMBERED), text)
  redis.call("PEXPIRE", client_key, FOR_MS)
  return reply
end

return requests
