-- What lanes with a name have besides a list (see lanes.lua): the number of their next job, which the tenant keeps for
-- the default lane, and the job that an ordered one waits for.
local places = require "places"
local actions = require "actions"

local named_lanes = {}

-- An action keeps the number of its lane, so that its jobs are numbered without a gap even when the lane was empty in
-- between.
local function open_of_action(q, tenant, lane)
  lane.action = actions.of_lane(q, tenant.name, lane.token)
  lane.next = lane.action.next ~= 0 and lane.action.next or nil
  if lane.is_ordered then
    lane.lanes_key = q.keys.prefix .. "lanes:" .. tenant.name
    lane.busy = redis.call("HGET", lane.lanes_key, "busy:" .. lane.level .. ":" .. lane.token) or nil
    lane.was_busy = lane.busy
  end
end

function named_lanes.open(q, tenant, lane)
  lane.is_ordered = places.is_ordered(lane.token)
  if places.action_of(lane.token) then
    open_of_action(q, tenant, lane)
    return
  end
  local id = lane.level .. ":" .. lane.token
  lane.lanes_key = q.keys.prefix .. "lanes:" .. tenant.name
  local found = redis.call("HMGET", lane.lanes_key, id, "busy:" .. id)
  lane.next, lane.busy = tonumber(found[1]), found[2] or nil
  lane.was_busy = lane.busy
end

local function save_busy(lane, id)
  if lane.busy ~= lane.was_busy then
    if lane.busy then
      redis.call("HSET", lane.lanes_key, "busy:" .. id, lane.busy)
    else
      redis.call("HDEL", lane.lanes_key, "busy:" .. id)
    end
  end
end

function named_lanes.save(q, lane, is_empty)
  local id = lane.level .. ":" .. lane.token
  if lane.action then
    save_busy(lane, id)
    return
  end
  if is_empty and not lane.busy then
    -- Numbers of this lane are never given again: the clock, where a new one would start, is moved past them.
    if lane.was_next or lane.was_busy then
      redis.call("HDEL", lane.lanes_key, id, "busy:" .. id)
      q.clock = math.max(q.clock, lane.next or 0)
    end
    return
  end
  if lane.next ~= lane.was_next then
    redis.call("HSET", lane.lanes_key, id, string.format("%d", lane.next))
  end
  save_busy(lane, id)
end

return named_lanes
