-- Clients that serve some levels only. On the list of the idle they stand with their levels ("<client> high+normal"),
-- so that nobody wakes them for what they do not take.
local part_time = {}

-- Idle clients looked through for some that serve the levels asked for, so many at once and so often.
local PAGE, PAGES = 64, 16

local function serves(name, level)
  local levels = string.match(name, " (.*)$")
  return not levels or string.find(levels, level, 1, true) ~= nil
end

local function serves_all(name, levels)
  for level in pairs(levels) do
    if not serves(name, level) then
      return false
    end
  end
  return true
end

-- Adds whoever serves a level that nobody taken before does.
local function take(taken, name, open)
  local is_of_use = false
  for level in pairs(open) do
    if serves(name, level) then
      open[level], is_of_use = nil, true
    end
  end
  if is_of_use then
    taken[#taken + 1] = name
  end
end

-- One that serves all of the levels (a set), or else some that do so between them, as far as any do; of several, those
-- who went idle last. nil when nobody serves any.
function part_time.find(q, asking, levels)
  local taken, open = {}, {}
  for level in pairs(levels) do
    open[level] = true
  end
  for from = 0, (PAGES - 1) * PAGE, PAGE do
    local found = redis.call("ZREVRANGE", q.keys.idle, from, from + PAGE - 1, "WITHSCORES")
    local is_last = #found < 2 * PAGE
    for i = 1, #found, 2 do
      local name = found[i]
      is_last = is_last or tonumber(found[i + 1]) <= q.now
      if tonumber(found[i + 1]) <= q.now then
        break
      elseif name ~= asking and serves_all(name, levels) then
        return { name }
      elseif name ~= asking then
        take(taken, name, open)
      end
    end
    if is_last or not next(open) then
      break
    end
  end
  return #taken > 0 and taken or nil
end

-- Adds to the set `left` the levels that the caller does not serve and on which this very script has put somebody in
-- line: who else would wake anybody for them?
function part_time.add_unserved(q, levels, left)
  if q.paused then
    return left
  end
  local served = {}
  for _, level in ipairs(levels) do
    served[level] = true
  end
  for _, tenant in ipairs(q.tenants and q.tenants.list or {}) do
    for level, at in pairs(tenant.at) do
      if at.present and not at.was_present and not served[level] and not q.at[level].paused then
        left[level] = true
      end
    end
  end
  return left
end

return part_time
