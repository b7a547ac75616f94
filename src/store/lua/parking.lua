-- Who is parked until when, for claims to find those that are due: written with the tenants that this script has parked
-- or brought back.
local parking = {}

function parking.save(q)
  local parked, unparked, lifted = {}, {}, {}
  for _, tenant in ipairs(q.tenants.list) do
    local before = tenant.parked_before
    if tenant.parked_until then
      parked[#parked + 1] = string.format("%d", tenant.parked_until)
      parked[#parked + 1] = tenant.name
    elseif before then
      unparked[#unparked + 1] = tenant.name
    end
    -- Whether it is parked again or not, it waits among the unparking no longer.
    if before and not q.is_nobody_unparking then
      lifted[#lifted + 1] = tenant.name
    end
  end
  if #unparked > 0 then
    redis.call("ZREM", q.keys.parked, unpack(unparked))
  end
  if #lifted > 0 then
    redis.call("ZREM", q.keys.unparking, unpack(lifted))
  end
  if #parked > 0 then
    redis.call("ZADD", q.keys.parked, unpack(parked))
  end
end

return parking
