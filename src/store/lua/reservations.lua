-- What callers without a job have reserved of a quota: no lease ends it. It counts as in flight until its answer is
-- told or a minute has passed. Those of one second and one member are kept as one: at most 61 of each member.
local reservations = {}

local SECOND = 1000000
local KEPT = 60 * SECOND

-- The state is "|second,permits,member" of each, oldest first. `has_landed`: the quota has forgotten all in flight.
function reservations.open(state, stored, has_landed)
  local kept, has_expired = {}, false
  for second, permits, member in string.gmatch(stored, "|(%d+),(%d+),([^|]*)") do
    local entry = { second = tonumber(second), permits = tonumber(permits), member = member }
    if entry.second * SECOND + KEPT > state.now then
      kept[#kept + 1] = entry
      if has_landed then
        state.meter.flies(state, entry.permits, member)
      end
    else
      if not has_landed then
        state.meter.release(state, entry.permits, member)
      end
      has_expired = true
    end
  end
  state.reserved, state.reserved_changed = kept, has_expired
  state.frees_at = kept[1] and kept[1].second * SECOND + KEPT
end

function reservations.add(state, member, permits)
  state.reserved = state.reserved or {}
  local reserved, second = state.reserved, math.ceil(state.now / SECOND)
  state.reserved_changed = true
  for i = #reserved, 1, -1 do
    if reserved[i].second ~= second then
      break
    elseif reserved[i].member == member then
      reserved[i].permits = reserved[i].permits + permits
      return
    end
  end
  reserved[#reserved + 1] = { second = second, permits = permits, member = member }
  state.frees_at = reserved[1].second * SECOND + KEPT
end

-- An answer has come: the oldest of the member are over.
function reservations.settle(state, member, permits)
  local reserved, kept, left = state.reserved or {}, {}, permits
  for _, entry in ipairs(reserved) do
    if left > 0 and entry.member == member then
      local settled = math.min(left, entry.permits)
      entry.permits, left = entry.permits - settled, left - settled
      state.meter.release(state, settled, member)
      state.reserved_changed = true
    end
    if entry.permits > 0 then
      kept[#kept + 1] = entry
    end
  end
  state.reserved = kept
  state.frees_at = kept[1] and kept[1].second * SECOND + KEPT
end

function reservations.stored(state)
  local texts = {}
  for i, entry in ipairs(state.reserved) do
    texts[i] = string.format("|%d,%d,%s", entry.second, entry.permits, entry.member)
  end
  return table.concat(texts)
end

return reservations
