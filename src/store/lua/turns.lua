-- Whose turn it is: the tenant with the lowest score of a level, merged from the ready set, read in pages, and from
-- what this script itself put back in line. Nothing is written until the plan stands.
local tenants = require "tenants"
local decimal = require "decimal"

local turns = {}

local LARGEST_PAGE = 32

-- A level's line is opened when somebody asks for it.
local BY_DEMAND = {
  __index = function(lines, level)
    local line = { level = level, page = {}, next = 1, offset = 0, is_read = false, extra = {}, looked_at = {} }
    rawset(lines, level, line)
    return line
  end,
}

function turns.open(q)
  q.lines = setmetatable({}, BY_DEMAND)
end

local function goes_before(score, name, other_score, other_name)
  return score < other_score or (score == other_score and name < other_name)
end

-- Puts a tenant in line by its score; equal scores stand by name, as in the set.
function turns.insert(q, level, tenant)
  local extra, score = q.lines[level].extra, tenant.at[level].score
  local at = #extra + 1
  while at > 1 and goes_before(score, tenant.name, extra[at - 1].at[level].score, extra[at - 1].name) do
    extra[at] = extra[at - 1]
    at = at - 1
  end
  extra[at] = tenant
end

-- As many tenants as the free hands are good for, if each takes its whole turn.
local function page_size(q)
  return math.min(LARGEST_PAGE, math.ceil(q.claim.left / q.settings.quantum) + 1)
end

-- The first name of the set that was not looked at yet. Scores are not read with the names (Redis writes them as text,
-- which costs more than all the rest): each tenant knows its own.
local function head_of_set(q, line)
  while true do
    local name = line.page[line.next]
    if not name then
      if line.is_read then
        return nil
      end
      local size = page_size(q)
      local last = line.offset + size - 1
      line.page = redis.call("ZRANGE", q.keys.ready[line.level], decimal.of(line.offset), decimal.of(last))
      line.next = 1
      line.offset = line.offset + size
      line.is_read = #line.page < size
    elseif line.looked_at[name] then
      line.next = line.next + 1
    else
      return name
    end
  end
end

-- The next tenant of the level; nil when nobody is in line. It is out of line until inserted again.
function turns.next(q, level)
  local line = q.lines[level]
  local name = head_of_set(q, line)
  local tenant = name and tenants.load(q, name)
  local first = line.extra[1]
  if first and (not tenant or goes_before(first.at[level].score, first.name, tenant.at[level].score, name)) then
    return table.remove(line.extra, 1)
  end
  if tenant then
    line.next = line.next + 1
    line.looked_at[name] = true
  end
  return tenant
end

return turns
