-- A queue's settings are what the code declares, with what operators changed while running in their place. Scripts read
-- them compiled, as one packed field of the queue's hash. (Settings are ours; payloads are never decoded here.)
local settings = {}

local SCOPES = { "queue", "high", "normal", "low", "tenant" }

local function compile_limits(declared, changed)
  local compiled = {}
  for _, scope in ipairs(SCOPES) do
    local rules, replaced = {}, {}
    for _, rule in ipairs((declared or {})[scope] or {}) do
      local change = ((changed or {})[scope] or {})[rule.name]
      replaced[rule.name] = true
      if not change then
        rules[#rules + 1] = rule
      elseif change.kind ~= "none" then
        rules[#rules + 1] = change
      end
    end
    local added = {}
    for name, change in pairs((changed or {})[scope] or {}) do
      if not replaced[name] and change.kind ~= "none" then
        added[#added + 1] = change
      end
    end
    table.sort(added, function(a, b)
      return a.name < b.name
    end)
    for _, change in ipairs(added) do
      rules[#rules + 1] = change
    end
    compiled[scope] = #rules > 0 and rules or nil
  end
  return compiled
end

-- The limits that the queue shares with others, each once: what it is called here, and the scopes it is attached to.
local function shared_among(limits)
  local found, by_limit = nil, {}
  for _, scope in ipairs(SCOPES) do
    for _, rule in ipairs(limits[scope] or {}) do
      if rule.kind == "shared" and not by_limit[rule.limit] then
        found = found or {}
        by_limit[rule.limit] = { limit = rule.limit, name = rule.name, scopes = {} }
        found[#found + 1] = by_limit[rule.limit]
      end
      if rule.kind == "shared" then
        local scopes = by_limit[rule.limit].scopes
        scopes[#scopes + 1] = scope
      end
    end
  end
  return found
end

-- A shared limit that a job would be charged for twice, or that levels have under two names; nil: there is none.
function settings.attached_twice(limits)
  local first = {}
  for _, scope in ipairs(SCOPES) do
    for _, rule in ipairs(limits[scope] or {}) do
      local before = rule.kind == "shared" and first[rule.limit]
      if before and (before.scope == "queue" or before.name ~= rule.name) then
        return rule.limit
      elseif rule.kind == "shared" then
        first[rule.limit] = before or { scope = scope, name = rule.name }
      end
    end
  end
  return nil
end

-- What is declared once a process has registered. What it does not give stays as others gave it, else it is the
-- default, which the process says as well. (Versions that do not say what is given declared their defaults like the
-- rest: of theirs only the limits stay.) `earlier`: what was declared before, {} if nothing was.
function settings.declare(earlier, wanted)
  local declared = { values = {}, given = {}, limits = wanted.limits or earlier.limits or {} }
  for name, value in pairs(wanted.values) do
    declared.values[name] = value
  end
  for name in pairs(earlier.given or {}) do
    declared.given[name] = true
    if not wanted.given[name] then
      declared.values[name] = earlier.values[name]
    end
  end
  for name in pairs(wanted.given) do
    declared.given[name] = true
  end
  return declared
end

-- Both are decoded from JSON; `known_since` tells claims that the store was emptied since their process registered, and
-- that it has to say again what it declares. Answers the packed field.
function settings.compile(declared, changed, known_since)
  local compiled = { known_since = known_since }
  for name, value in pairs(declared.values) do
    compiled[name] = value
  end
  for name, value in pairs(changed.values or {}) do
    compiled[name] = value
  end
  compiled.limits = compile_limits(declared.limits, changed.limits)
  compiled.has_limits = next(compiled.limits) ~= nil or nil
  compiled.shared = shared_among(compiled.limits)
  return cmsgpack.pack(compiled)
end

function settings.is_same(a, b)
  if type(a) ~= "table" or type(b) ~= "table" then
    return a == b
  end
  for name, value in pairs(a) do
    if not settings.is_same(value, b[name]) then
      return false
    end
  end
  for name in pairs(b) do
    if a[name] == nil then
      return false
    end
  end
  return true
end

-- Whether tenants stand under the same limits by both, each as it was unpacked. (The packed texts differ where only the
-- order of names does, and where one version stores that there are none and another nothing.)
function settings.have_same_limits(a, b)
  for _, scope in ipairs(SCOPES) do
    if not settings.is_same(a.limits[scope] or {}, b.limits[scope] or {}) then
      return false
    end
  end
  return a.strict == b.strict
end

-- Puts a patch into the changes: a value replaces; a rule of kind "declared" takes a change back.
function settings.merge(changed, patch)
  changed.values, changed.limits = changed.values or {}, changed.limits or {}
  for name, value in pairs(patch.values or {}) do
    changed.values[name] = value
  end
  for scope, rules in pairs(patch.limits or {}) do
    changed.limits[scope] = changed.limits[scope] or {}
    for name, rule in pairs(rules) do
      changed.limits[scope][name] = rule.kind ~= "declared" and rule or nil
    end
  end
  return changed
end

return settings
