-- Whose turn it is: the tenant with the lowest score of a level, merged from the ready set, read in pages, and from
-- what this script itself put back in line. Nothing is written until the plan stands.
local tenants = require "tenants"

local turns = {}

local PAGE = 8
-- Tenants looked at for one that is overdue; see turns.overdue.
local OVERDUE_LOOKS = 4

function turns.open(q)
  q.lines, q.looked_at = {}, {}
  for _, level in ipairs({ "high", "normal", "low" }) do
    q.lines[level] = { level = level, page = {}, at = 1, offset = 0, extra = {} }
    q.looked_at[level] = {}
  end
end

-- Puts a tenant in line by score; equal scores stand by name, as in the set.
function turns.insert(q, level, name, score)
  local extra = q.lines[level].extra
  local at = #extra + 1
  while at > 1 and (extra[at - 1].score > score or (extra[at - 1].score == score and extra[at - 1].name > name)) do
    at = at - 1
  end
  table.insert(extra, at, { name = name, score = score })
end

local function head_of_set(q, line)
  while true do
    local name = line.page[line.at]
    if not name then
      if line.is_read then
        return nil
      end
      line.page = redis.call("ZRANGE", q.keys.ready[line.level], line.offset, line.offset + PAGE - 1, "WITHSCORES")
      line.at = 1
      line.offset = line.offset + PAGE
      line.is_read = #line.page < 2 * PAGE
    elseif q.looked_at[line.level][name] then
      line.at = line.at + 2
    else
      return name, tonumber(line.page[line.at + 1])
    end
  end
end

-- The next tenant of the level and its score; nil when nobody is in line. It is out of line until inserted again.
function turns.next(q, level)
  local line = q.lines[level]
  local name, score = head_of_set(q, line)
  local first = line.extra[1]
  if first and (not name or first.score < score or (first.score == score and first.name < name)) then
    table.remove(line.extra, 1)
    return first.name, first.score
  end
  if name then
    line.at = line.at + 2
    q.looked_at[level][name] = true
  end
  return name, score
end

-- The longest overdue tenant of a level and since when, or nil. The set is not written with every turn: a tenant may
-- have had one since it entered the line. Where that turns out, the set is corrected, once in a long while for each.
local function overdue_of(q, level, before)
  for _, name in ipairs(redis.call("ZRANGEBYSCORE", q.keys.since[level], "-inf", before, "LIMIT", 0, OVERDUE_LOOKS)) do
    local at = tenants.load(q, name).at[level]
    if at.present and at.since < before then
      if not q.looked_at[level][name] then
        return name, at.since
      end
    else
      at.since_corrected = true
    end
  end
end

-- The tenant that has been able to run for longest, if that is longer than anyone should wait: level, name.
function turns.overdue(q, levels)
  local oldest, oldest_level, oldest_name
  for _, level in ipairs(levels) do
    local before = q.now - q.settings.max_wait
    -- Nobody can have been waiting since before the level, or the queue, was resumed.
    if before > math.max(q["resumed:" .. level], q.resumed) then
      local name, since = overdue_of(q, level, before)
      if name and (not oldest or since < oldest) then
        oldest, oldest_level, oldest_name = since, level, name
      end
    end
  end
  if oldest_name then
    q.looked_at[oldest_level][oldest_name] = true
  end
  return oldest_level, oldest_name
end

return turns
