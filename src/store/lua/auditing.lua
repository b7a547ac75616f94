-- What the audit finds: kinds of differences, and what they are about. Repairs are noted while a script looks and
-- carried out at its end, unless it only looks.
local queue = require "queue"
local events = require "events"

local auditing = {}

-- Events that one script writes: after a disaster there may be thousands of differences, and all of them are counted.
local TOLD = 20

function auditing.open(q, repairs)
  q.audit = { found = {}, repairs = {}, skipped = {}, is_repairing = repairs }
end

-- There is too much of it to be looked at.
function auditing.skip(q, what)
  q.audit.skipped[#q.audit.skipped + 1] = what
end

-- Instants have more digits than Lua writes by itself.
local function text(value)
  return type(value) == "number" and string.format("%.0f", value) or tostring(value)
end

-- `repair` mends it.
function auditing.differs(q, kind, subject, expected, found, repair)
  local list = q.audit.found
  list[#list + 1] = { kind, subject, text(expected), text(found) }
  if repair then
    q.audit.repairs[#q.audit.repairs + 1] = repair
  end
end

-- Compares a number in a table, and puts it right there; the caller writes the table.
function auditing.number(q, kind, subject, holder, field, expected)
  if holder[field] == expected then
    return
  end
  auditing.differs(q, kind, subject, expected, holder[field], function()
    holder[field] = expected
  end)
end

local function tell(q)
  for i, difference in ipairs(q.audit.found) do
    queue.count(q, "differences", 1)
    queue.count(q, "difference:" .. difference[1], 1)
    if i <= TOLD then
      events.add(q, "audit.repaired", { "reason", difference[1], "subject", difference[2] })
    end
  end
end

-- Puts right what was found, counts it and tells of it. Answers whether there was anything: the caller saves then.
function auditing.mend(q)
  if not q.audit.is_repairing or #q.audit.found == 0 then
    return false
  end
  for _, repair in ipairs(q.audit.repairs) do
    repair()
  end
  tell(q)
  return true
end

-- For how long nobody has claimed anything: fences go by the time. Whoever looks at a queue that rests takes its time.
function auditing.quiet(q)
  return string.format("%d", math.max(0, q.now - q.fence))
end

return auditing
