-- Who is parked until when, for claims to find those that are due: written with the tenants that this script has parked
-- or brought back.
local parking = {}

local format = string.format

function parking.save(q)
  local parked, unparked, lifted = {}, {}, {}
  local parked_count, unparked_count, lifted_count = 0, 0, 0
  local list, is_nobody_unparking = q.tenants.list, q.is_nobody_unparking
  for i = 1, #list do
    local tenant = list[i]
    local before, until_us = tenant.parked_before, tenant.parked_until
    if until_us then
      parked[parked_count + 1], parked[parked_count + 2] = format("%d", until_us), tenant.name
      parked_count = parked_count + 2
    elseif before then
      unparked_count = unparked_count + 1
      unparked[unparked_count] = tenant.name
    end
    -- Whether it is parked again or not, it waits among the unparking no longer.
    if before and not is_nobody_unparking then
      lifted_count = lifted_count + 1
      lifted[lifted_count] = tenant.name
    end
  end
  if unparked_count > 0 then
    redis.call("ZREM", q.keys.parked, unpack(unparked))
  end
  if lifted_count > 0 then
    redis.call("ZREM", q.keys.unparking, unpack(lifted))
  end
  if parked_count > 0 then
    redis.call("ZADD", q.keys.parked, unpack(parked))
  end
end

return parking
