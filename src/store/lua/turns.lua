-- Whose turn it is: the tenant with the lowest score of a level, merged from the ready set, read in pages, and from
-- what this script itself put back in line. Nothing is written until the plan stands.
local turns = {}

local PAGE = 16

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

-- The tenant that has been able to run for longest, if that is longer than anyone should wait: level, name.
function turns.overdue(q, levels)
  local oldest, oldest_level, oldest_name = q.now - q.settings.max_wait, nil, nil
  for _, level in ipairs(levels) do
    local found = redis.call("ZRANGE", q.keys.since[level], 0, 0, "WITHSCORES")
    if found[1] and not q.looked_at[level][found[1]] then
      local since = math.max(tonumber(found[2]), q["resumed:" .. level], q.resumed)
      if since < oldest then
        oldest, oldest_level, oldest_name = since, level, found[1]
      end
    end
  end
  if oldest_name then
    q.looked_at[oldest_level][oldest_name] = true
  end
  return oldest_level, oldest_name
end

return turns
