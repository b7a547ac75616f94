-- Nothing starves: the tenant that has been able to run for longest, when that is longer than anyone should wait.
local tenants = require "tenants"

local guard = {}

-- Tenants looked at for one that is overdue.
local LOOKS = "4"

-- The longest overdue tenant of a level, or nil. The set is not written with every turn: a tenant may
-- have had one since it entered the line. Where that turns out, the set is corrected, once in a long while for each.
local function overdue_of(q, level, before)
  local longest
  local until_text = string.format("%d", before)
  for _, name in ipairs(redis.call("ZRANGEBYSCORE", q.keys.since[level], "-inf", until_text, "LIMIT", "0", LOOKS)) do
    local at = tenants.load(q, name).at[level]
    if at.present and at.since < before then
      if not q.lines[level].looked_at[name] and (not longest or at.since < longest.at[level].since) then
        longest = tenants.load(q, name)
      end
    else
      at.since_corrected = true
    end
  end
  return longest
end

-- The tenant that has been able to run for longest, if that is longer than anyone should wait, and its level.
function guard.overdue(q, levels)
  local oldest, oldest_level
  for _, level in ipairs(levels) do
    local before = q.now - q.settings.max_wait
    -- Nobody can have been waiting since before the level, or the queue, was resumed; nor where nobody is in line.
    if q.at[level].weights > 0 and before > math.max(q.at[level].resumed or 0, q.resumed or 0) then
      local tenant = overdue_of(q, level, before)
      if tenant and (not oldest or tenant.at[level].since < oldest.at[oldest_level].since) then
        oldest, oldest_level = tenant, level
      end
    end
  end
  if oldest then
    q.lines[oldest_level].looked_at[oldest.name] = true
  end
  return oldest, oldest_level
end

return guard
