const GUARD = `
local function list(value, path, seen, found)
  found[path] = tostring(value)
  if type(value) == "table" and not seen[value] then
    seen[value] = true
    for key, each in pairs(value) do
      list(each, path .. "." .. tostring(key), seen, found)
    end
  end
  return found
end
local function changed(before, after)
  for path, value in pairs(before) do
    if after[path] ~= value then
      return path
    end
  end
  for path in pairs(after) do
    if not before[path] then
      return path
    end
  end
end
local before = list(shared, "", {}, {})
for name, run in pairs(scripts) do
  scripts[name] = function(keys, args)
    local reply = run(keys, args)
    local after = list(shared, "", {}, {})
    local what = changed(before, after)
    if what then
      before = after
      error("a call has changed what all calls share: " .. what)
    end
    return reply
  end
end
return scripts
end`

/**
 * A library's source so that a call fails which leaves something behind in a module's table or in a table among its
 * constants: modules are made once and stay, so every later call would find it, of whatever queue. Line numbers stay.
 */
export function guardedLibrary(source: string): string {
  return source
    .replace(/(?<=\ndo\n)([\s\S]*?)\n(?=modules\.(\w+) = )/g, (_, body: string, name: string) => {
      const constants = [...body.matchAll(/^local ([A-Z][A-Z0-9_, ]*) = /gm)].flatMap(([, names = '']) =>
        names.split(', '),
      )
      const fields = constants.map((each) => `${each} = ${each}`).join(', ')
      return `${body}\nshared.${name} = { ${fields} } `
    })
    .replace(/(?<=\nlocal modules, scripts = .*)(?=\n)/, ' local shared = { modules = modules }')
    .replace(/\nreturn scripts\nend$/, () => GUARD)
}
