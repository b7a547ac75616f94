const GUARD = `
local function image(value, seen)
  if type(value) ~= "table" or seen[value] then
    return tostring(value)
  end
  seen[value] = true
  local parts = {}
  for key, each in pairs(value) do
    parts[#parts + 1] = tostring(key) .. "=" .. image(each, seen)
  end
  return table.concat(parts, "\\n")
end
local before = image(shared, {})
for name, run in pairs(scripts) do
  scripts[name] = function(keys, args)
    local reply = run(keys, args)
    local after = image(shared, {})
    if after ~= before then
      error("a call has changed what all calls share:\\n" .. after)
    end
    return reply
  end
end
return scripts
end`

/**
 * A library's source so that a call fails which leaves something behind: modules are made once and stay, with their constants,
 * and what a call wrote into one of these would be found by every later one, of whatever queue.
 */
export function guardedLibrary(source: string): string {
  const modules = source.replace(/\ndo\n([\s\S]*?)\nmodules\.(\w+) = /g, (all, body: string, name: string) => {
    const constants = [...body.matchAll(/^local ([A-Z][A-Z0-9_, ]*) = /gm)].flatMap(([, names = '']) =>
      names.split(', '),
    )
    const end = all.lastIndexOf('\nmodules.')
    return `${all.slice(0, end)}\nshared.${name} = { ${constants.join(', ')} }${all.slice(end)}`
  })
  return modules
    .replace(/(\nlocal modules, scripts = .*\n)/, '$1local shared = { modules = modules }\n')
    .replace(/\nreturn scripts\nend$/, () => GUARD)
}
