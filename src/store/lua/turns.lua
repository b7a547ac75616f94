-- Whose turn it is: the tenant with the lowest score of a level, merged from the ready set, read in pages, and from
-- what this script itself put back in line. Nothing is written until the plan stands.
--
-- The line goes round: a tenant whose turn is over stands at the end. One that has new work, though, stands right
-- before the turn that began last, and that turn goes on after it: a single job need not wait for turns of others. That
-- nobody gains by running out of work again and again is seen to by counting: how far each tenant has been served, and
-- how far the rounds have come. One that has new work and is a turn ahead of the rounds lets others go first.
local queue = require "queue"
local tenants = require "tenants"
local decimal = require "decimal"

local turns = {}

local LARGEST_PAGE = 32
local LOOKS = 64 -- tenants looked at in one claim
-- Tenants that are ahead and keep their place. They are looked at in every claim, so the others go to the end.
local MOST_AHEAD = 8

local TURN, floor = queue.TURN, math.floor

turns.LOOKS = LOOKS

-- A level's line is opened when somebody asks for it. A quantum is in thousandths, as all that rounds count by; nil
-- where progress is an order of its own, and there are none.
function turns.open(q)
  local quantum = q.settings.alpha == 0 and q.settings.quantum * 1000 or nil
  q.lines = setmetatable({ high = nil, normal = nil, low = nil }, {
    __index = function(lines, level)
      local line = {
        level = level, page = {}, next = 1, offset = 0, is_read = false, extra = {}, looked_at = {},
        rounds = q.at[level], quantum = quantum,
      }
      rawset(lines, level, line)
      return line
    end,
  })
end

local function goes_before(tenant, other, level)
  local score, other_score = tenant.at[level].score, other.at[level].score
  return score < other_score or (score == other_score and tenant.name < other.name)
end

-- Puts a tenant in line by its score; equal scores stand by name, as in the set.
function turns.insert(q, level, tenant)
  local extra = q.lines[level].extra
  local at = #extra + 1
  while at > 1 and goes_before(tenant, extra[at - 1], level) do
    extra[at] = extra[at - 1]
    at = at - 1
  end
  extra[at] = tenant
end

-- As many tenants as the free hands are good for, if each takes its whole turn.
local function page_size(q)
  return math.min(LARGEST_PAGE, math.ceil(q.claim.left / q.settings.quantum) + 1)
end

-- Scores are not read with the names (Redis writes them as text, which costs more than all the rest): each tenant knows
-- its own.
local function read_page(q, line)
  local size = page_size(q)
  local last = line.offset + size - 1
  line.page = redis.call("ZRANGE", q.keys.ready[line.level], decimal.of(line.offset), decimal.of(last))
  line.next = 1
  line.offset = line.offset + size
  line.is_read = #line.page < size
end

-- The first of the set that was not looked at yet and is still in line: this script itself may have taken others out of
-- it.
local function first_present(q, line)
  local level, looked_at = line.level, line.looked_at
  while true do
    local name = line.page[line.next]
    if name then
      if not looked_at[name] then
        local tenant = tenants.load(q, name)
        if tenant.at[level].present then
          return tenant, name
        end
        looked_at[name] = true
      end
      line.next = line.next + 1
    elseif line.is_read then
      return nil
    else
      read_page(q, line)
    end
  end
end

-- The first in line; nil when nobody is.
local function first_of(q, line)
  local level, extra = line.level, line.extra
  local tenant, name = first_present(q, line)
  local first = extra[1]
  while first and not first.at[level].present do
    table.remove(extra, 1)
    first = extra[1]
  end
  if first and (not tenant or goes_before(first, tenant, level)) then
    return table.remove(extra, 1)
  end
  if tenant then
    line.next = line.next + 1
    line.looked_at[name] = true
  end
  return tenant
end

-- The first in line that is not ahead; when all are, the one that is so least, and the rounds have come as far.
local function first_behind(q, line, tenant)
  local level, ahead = line.level, {}
  local rounds, quantum = line.rounds, line.quantum
  while tenant and q.claim.looks < LOOKS do
    local at = tenant.at[level]
    if at.score - (tenant.base or 0) * 1000 > rounds.entry or at.reached - rounds.reached < quantum then
      break
    end
    if #ahead < MOST_AHEAD then
      ahead[#ahead + 1] = tenant
    else
      tenants.set_score(at, tenants.new_score(q, tenant))
      turns.insert(q, level, tenant)
      q.claim.looks = q.claim.looks + 1
    end
    tenant = first_of(q, line)
  end
  if not tenant then
    local least = 1
    for i = 2, #ahead do
      if ahead[i].at[level].reached < ahead[least].at[level].reached then
        least = i
      end
    end
    tenant = table.remove(ahead, least)
    rounds.reached = tenant.at[level].reached
  end
  for i = 1, #ahead do
    turns.insert(q, level, ahead[i])
  end
  return tenant
end

-- The next tenant of the level; nil when nobody is in line. It is out of line until inserted again.
function turns.next(q, level)
  local line = q.lines[level]
  local tenant, quantum = first_of(q, line), line.quantum
  if not tenant or not quantum then
    return tenant
  end
  local at, rounds = tenant.at[level], line.rounds
  local start, entry = at.score, rounds.entry
  if tenant.base then
    start = start - tenant.base * 1000
  end
  if start <= entry and at.reached - rounds.reached >= quantum then
    tenant = first_behind(q, line, tenant)
    start = tenant.at[level].score - (tenant.base or 0) * 1000
  end
  if start > entry then
    -- A score of when progress counted may be ahead of the clock.
    start = start < q.clock and start or q.clock
    rounds.entry = start - TURN > entry and start - TURN or entry
    if start > rounds.round then
      rounds.round, rounds.reached = q.clock, rounds.reached - rounds.reached % quantum + quantum
    end
  end
  return tenant
end

-- It has been served. What it has used of its turn is how far the round has come, unless another has used more.
function turns.advance(q, tenant, level, at, cost)
  local line = q.lines[level]
  local rounds, quantum, weight = line.rounds, line.quantum, tenant.weight
  if not quantum then
    return
  end
  local part, done = at.used, cost * 1000
  if weight ~= 1 then
    part, done = floor(part / weight), floor(done / weight + 0.5)
  end
  at.reached = at.reached + done
  local base = tenant.base
  if (base and at.score - base * 1000 or at.score) > rounds.entry then
    part = part < quantum and part or quantum - 1
    local reached = rounds.reached
    local come = reached - reached % quantum + part
    if come > reached then
      rounds.reached = come
    end
  end
end

return turns
