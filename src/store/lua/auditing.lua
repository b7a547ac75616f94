-- What the audit finds: kinds of differences, and what they are about. Repairs are noted while a script looks and
-- carried out at its end, unless it only looks.
local auditing = {}

function auditing.open(q, repairs)
  q.audit = { found = {}, repairs = {}, is_repairing = repairs }
end

-- `repair` mends it.
function auditing.differs(q, kind, subject, expected, found, repair)
  local list = q.audit.found
  list[#list + 1] = { kind, subject, tostring(expected), tostring(found) }
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

-- Answers whether anything was mended.
function auditing.mend(q)
  if not q.audit.is_repairing then
    return false
  end
  for _, repair in ipairs(q.audit.repairs) do
    repair()
  end
  return #q.audit.repairs > 0
end

return auditing
