/**
 * Which functions of its modules a script can reach. A script runs from its top each time, and a function that it makes
 * costs as much as half a command: what it does not need is left out of it.
 *
 * Found by names, which errs on the side of keeping: `tenants.load` reaches that function of the module required as
 * `tenants`; `state.meter.charge`, where the names do not say which module it is, reaches the function `charge` of every
 * module whose table is handed on somewhere (`return bucket`); the name of a local function reaches it wherever it stands
 * in its module.
 */

/** A function at the top of a module: its name without that of the module, and its lines, from 0, the last included. */
export interface LuaFunction {
  readonly name: string
  readonly isLocal: boolean
  readonly from: number
  readonly to: number
}

/** What the names of a line say. */
interface LuaLine {
  readonly words: readonly string[]
  /** Each field with what it is a field of: '' where that has no name. */
  readonly fields: readonly (readonly [owner: string, field: string])[]
  /** What is indexed with something that only the run knows. */
  readonly indexed: readonly string[]
  readonly required: { readonly as: string; readonly identifier: string } | undefined
}

export interface LuaCode {
  readonly lines: readonly LuaLine[]
  /** What the code calls the modules that it requires. A name may be used again for another one. */
  readonly aliases: ReadonlyMap<string, readonly string[]>
  /** Modules whose table it hands on, so that others may have it under any name. */
  readonly handsOn: ReadonlySet<string>
}

export interface ReachableModule {
  readonly identifier: string
  readonly code: LuaCode
  readonly functions: readonly LuaFunction[]
  /** What others find in its table. */
  readonly fields: ReadonlySet<string>
}

const FUNCTION = /^(local )?function (?:\w+\.)?(\w+)\(/

/** The functions at the top of a file, or the line, from 0, of one that ends nowhere. */
export function findFunctions(lines: readonly string[]): LuaFunction[] | number {
  const found: LuaFunction[] = []
  for (let from = 0; from < lines.length; from++) {
    const head = FUNCTION.exec(lines[from] as string)
    if (!head) continue
    const isEmpty = /\) end$/.test(lines[from] as string)
    const ends = (line: string, index: number) => index > from && (line === 'end' || FUNCTION.test(line))
    const to = isEmpty ? from : lines.findIndex(ends)
    if (!isEmpty && lines[to] !== 'end') return from
    found.push({ name: head[2] as string, isLocal: head[1] !== undefined, from, to })
    from = to
  }
  return found
}

const REQUIRED = /\blocal (\w+) = made\.(\w+) or make\(""\)/
const FIELD = /([A-Za-z_]\w*)?(?<!\.)\.(?!\.)\s*([A-Za-z_]\w*)/g

/**
 * @param lines - Without comments and texts.
 * @param own - For a module: what its table is called in it, and what it is called by others.
 */
export function readCode(lines: readonly string[], own?: { table: string; identifier: string }): LuaCode {
  const aliases = new Map<string, string[]>(own ? [[own.table, [own.identifier]]] : [])
  const read = lines.map((line): LuaLine => {
    const [, as, identifier] = REQUIRED.exec(line) ?? []
    if (as !== undefined && identifier !== undefined) {
      aliases.set(as, [...(aliases.get(as) ?? []), identifier])
      return { words: [], fields: [], indexed: [], required: { as, identifier } }
    }
    return {
      words: line.match(/[A-Za-z_]\w*/g) ?? [],
      fields: [...line.matchAll(FIELD)].map(([, owner = '', field = '']) => [owner, field] as const),
      indexed: [...line.matchAll(/(?<![\w.])([A-Za-z_]\w*)\s*\[/g)].map(([, name = '']) => name),
      required: undefined,
    }
  })
  return { lines: read, aliases, handsOn: handedOn(read, lines, aliases, own?.table) }
}

/** What stands there by itself: neither a field, nor asked for one, nor what something is assigned to. */
const ALONE = /(?<![\w.])([A-Za-z_]\w*)(?!\w|\s*(?:[.[]|=(?!=)))/g

function handedOn(
  read: readonly LuaLine[],
  lines: readonly string[],
  aliases: LuaCode['aliases'],
  table: string | undefined,
): Set<string> {
  const found = new Set<string>()
  for (const [index, line] of lines.entries()) {
    // A module hands its own table to whoever requires it, by name.
    if (read[index]?.required || line === `return ${table}`) continue
    for (const [, name = ''] of line.matchAll(ALONE)) for (const each of aliases.get(name) ?? []) found.add(each)
  }
  return found
}

/** Fields of modules that the code names and that these do not have: each with its line, from 0. */
export function missingFields(code: LuaCode, modules: ReadonlyMap<string, ReachableModule>) {
  return code.lines.flatMap(({ fields }, line) =>
    fields.flatMap(([owner, field]) => {
      const owners = (code.aliases.get(owner) ?? []).flatMap((identifier) => modules.get(identifier) ?? [])
      const has = ({ fields: known }: ReachableModule) => known.has(field)
      return owners.length === 0 || owners.some(has) ? [] : [{ line, name: `${owner}.${field}` }]
    }),
  )
}

/** The functions that are needed of each module that is, by a script with this text of its own. */
export function reach<Module extends ReachableModule>(
  script: LuaCode,
  modules: ReadonlyMap<string, Module>,
): Map<Module, Set<LuaFunction>> {
  const needed = new Map<Module, Set<LuaFunction>>()
  /** Fields of what may be any module that is handed on. */
  const loose = new Set<string>()
  const handedOn = new Set(
    [script, ...Array.from(modules.values(), ({ code }) => code)].flatMap(({ handsOn }) => [...handsOn]),
  )
  const isHandedOn = ({ identifier }: ReachableModule) => handedOn.has(identifier)

  const keep = (module: Module, isWanted: (each: LuaFunction) => boolean): void => {
    for (const each of module.functions) {
      if (needed.get(module)?.has(each) || !isWanted(each)) continue
      needed.get(module)?.add(each)
      follow(module.code.lines.slice(each.from + 1, each.to), module)
    }
  }

  const open = (identifier: string): void => {
    const module = modules.get(identifier)
    if (!module || needed.has(module)) return
    needed.set(module, new Set())
    const isOfFunction = (index: number) => module.functions.some(({ from, to }) => from <= index && index <= to)
    const outside = module.code.lines.filter((_, index) => !isOfFunction(index))
    follow(outside, module)
    if (isHandedOn(module)) keep(module, ({ name, isLocal }) => !isLocal && loose.has(name))
  }

  /** The modules that may be meant by a name; undefined when it is none of those which are there by now. */
  const named = (name: string, code: LuaCode): Module[] | undefined => {
    const found = (code.aliases.get(name) ?? []).flatMap((identifier) => modules.get(identifier) ?? [])
    return found.length > 0 && found.every((module) => needed.has(module)) ? found : undefined
  }

  const follow = (lines: readonly LuaLine[], inside: Module | undefined): void => {
    const code = inside?.code ?? script
    for (const { words, fields, indexed, required } of lines) {
      if (required) open(required.identifier)
      for (const [owner, field] of fields) {
        const owners = named(owner, code)
        if (!owners) loose.add(field)
        for (const module of owners ?? [...needed.keys()].filter(isHandedOn))
          keep(module, ({ name, isLocal }) => !isLocal && name === field)
      }
      for (const name of indexed) for (const module of named(name, code) ?? []) keep(module, ({ isLocal }) => !isLocal)
      if (inside) keep(inside, ({ name, isLocal }) => isLocal && words.includes(name))
    }
  }

  follow(script.lines, undefined)
  return needed
}
