/**
 * Turns src/store/scripts/*.lua and the modules they require (src/store/lua/*.lua) into one typed module,
 * src/store/scripts.generated.ts. The head of a script is its signature:
 *
 *   #!lua flags=allow-oom
 *   -- What the script does, and what it replies.
 *   local bucket = require "bucket"
 *   local ready_key = KEYS[1] -- zset: tenant → fairness score        → keys.ready: string
 *   local wanted = tonumber(ARGV[1]) -- jobs                          → args.wanted: number
 *   local client = ARGV[2] -- who asks                                → args.client: string
 *   local ids, ids_from = ARGV, 3 -- list: jobs that are done         → args.ids: list, always the last
 *
 * Modules end up once each at the top of the script, in order of dependency. As with any `require`, a module runs when it
 * is first required: what only rare cases need is required where they are, and costs the others nothing. Functions that
 * the script cannot reach are left out (see lua-reach.ts). A script runs from its top each time: before, making functions
 * was a third of what a claim of one job cost. Lines of a file stay together and keep their count, so that `origins` can
 * lead from a line in a Lua error back to file and line.
 *
 * The text of a module stands in the generated file once, however many scripts are put together from it: as whole texts
 * they would be ten times as long, to be read by every process that starts.
 */
import { createHash } from 'node:crypto'
import { existsSync, mkdirSync, readdirSync, readFileSync, writeFileSync } from 'node:fs'
import { basename, dirname, join, relative } from 'node:path'
import { fileURLToPath } from 'node:url'
import { type LuaPart, type LuaText, putTogether, type ScriptParts } from '../src/store/script-text.ts'
import { findFunctions, type LuaCode, type LuaFunction, missingFields, reach, readCode } from './lua-reach.ts'

export interface LuaFolders {
  /** Paths in problems are relative to this folder. */
  root: string
  scripts: string
  modules: string
}

export interface LuaProblem {
  file: string
  line: number
  problem: string
}

export class LuaBuildError extends Error {
  readonly problems: readonly LuaProblem[]

  constructor(problems: readonly LuaProblem[]) {
    super(problems.map(({ file, line, problem }) => `${file}:${line}: ${problem}`).join('\n'))
    this.name = 'LuaBuildError'
    this.problems = problems
  }
}

type ArgumentKind = 'string' | 'number' | 'list'

interface Parameter {
  name: string
  comment: string
}

interface Argument extends Parameter {
  kind: ArgumentKind
}

interface Head {
  doc: string[]
  keys: Parameter[]
  args: Argument[]
}

interface LuaModule {
  file: string
  identifier: string
  /** Comment-free lines; a require of another module is already replaced. */
  lines: string[]
  requires: string[]
  /** Those of them that it requires when it is made, and not only when some function of it runs. */
  requiresAtOnce: string[]
  functions: LuaFunction[]
  fields: Set<string>
  code: LuaCode
  /** What its table is called in it. */
  table: string
}

interface BuiltScript extends Head {
  name: string
  shebang: string
  first: LuaModule[]
  rare: LuaModule[]
  needed: Map<LuaModule, Set<LuaFunction>>
  own: LuaText
}

const REQUIRE = /^local\s+([A-Za-z_]\w*)\s*=\s*require\s*\(?\s*(["'])([^"']+)\2\s*\)?$/
const KEY = /^local\s+([A-Za-z_]\w*)\s*=\s*KEYS\[(\d+)\]$/
const STRING_ARGUMENT = /^local\s+([A-Za-z_]\w*)\s*=\s*ARGV\[(\d+)\]$/
const NUMBER_ARGUMENT = /^local\s+([A-Za-z_]\w*)\s*=\s*tonumber\(ARGV\[(\d+)\]\)$/
const LIST_ARGUMENT = /^local\s+([A-Za-z_]\w*)\s*,\s*([A-Za-z_]\w*)\s*=\s*ARGV\s*,\s*(\d+)$/
const POSITIONS = /\b(KEYS|ARGV)\b/

// Stands for a line of a long string while the lines around it are trimmed; a private-use character, in no script.
const PLACEHOLDER = '\uE000'

/** Lua text without comments, indentation and trailing space, with as many lines as before. */
function stripComments(source: string): string[] {
  const token =
    /--\[(=*)\[[\s\S]*?\]\1\]|--[^\n]*|\[(=*)\[[\s\S]*?\]\2\]|"(?:\\[\s\S]|[^"\\\n])*"|'(?:\\[\s\S]|[^'\\\n])*'/g
  const longStrings: string[] = []
  const bare = source.replace(token, (text) => {
    if (text.startsWith('--')) return text.replace(/[^\n]/g, '')
    if (!text.startsWith('[') || !text.includes('\n')) return text
    // A string over several lines keeps its spaces: it is put back after the lines are trimmed.
    longStrings.push(text)
    return PLACEHOLDER + `\n${PLACEHOLDER}`.repeat(text.split('\n').length - 1)
  })
  const trimmed = bare.split('\n').map((line) => line.trim())
  if (longStrings.length === 0) return trimmed
  let next = 0
  return trimmed
    .join('\n')
    .replace(/\uE000(?:\n\uE000)*/g, () => longStrings[next++] ?? '')
    .split('\n')
}

/** The same with the contents of strings blanked, to look for names without being fooled by text. */
function withoutStrings(line: string): string {
  return line.replace(/"(?:\\.|[^"\\])*"|'(?:\\.|[^'\\])*'|\[(=*)\[.*?\]\1\]/g, '""')
}

function readLines(file: string): string[] {
  return readFileSync(file, 'utf8').replace(/\r\n/g, '\n').replace(/\n+$/, '').split('\n')
}

function camelCase(name: string): string {
  return name.replace(/[-_]+([A-Za-z0-9])/g, (_, letter: string) => letter.toUpperCase())
}

function identifierOf(moduleName: string): string {
  return moduleName.replaceAll('-', '_')
}

function luaFiles(folder: string): string[] {
  if (!existsSync(folder)) return []
  return readdirSync(folder)
    .filter((name) => name.endsWith('.lua'))
    .sort()
}

/** The module so that it leaves itself in `made`, where others find it. */
function makingOf({ file, identifier, lines }: LuaModule): LuaText {
  const body = [...lines]
  const last = body.findLastIndex((line) => line !== '')
  body[last] = (body[last] as string).replace(/^return\b/, `made.${identifier} =`)
  return { file, lines: body }
}

/**
 * What a script has of a module. The module's table has room from the start for all that is put into it: one that
 * outgrows its room is made anew.
 */
function partOf(module: LuaModule, needed: ReadonlySet<LuaFunction>): Omit<LuaPart, 'name' | 'module'> {
  const unneeded = module.functions.filter((each) => !needed.has(each))
  const left = new Set(module.fields)
  for (const { name, isLocal } of unneeded) if (!isLocal) left.delete(name)
  const made = module.lines.indexOf(`local ${module.table} = {}`)
  const room = [...left].map((name) => `${name} = nil`)
  return {
    instead: made >= 0 && room.length > 1 ? { [made]: `local ${module.table} = { ${room.join(', ')} }` } : {},
    without: unneeded.flatMap(({ from, to }) => [from, to]),
  }
}

class LuaBuilder {
  readonly problems: LuaProblem[] = []
  readonly #folders: LuaFolders
  readonly #modules = new Map<string, LuaModule | undefined>()

  constructor(folders: LuaFolders) {
    this.#folders = folders
  }

  #report(file: string, line: number, problem: string): void {
    this.problems.push({ file, line, problem })
  }

  /** Reads a module once; undefined when there is none of that name. */
  module(name: string): LuaModule | undefined {
    if (this.#modules.has(name)) return this.#modules.get(name)
    this.#modules.set(name, undefined)
    const path = join(this.#folders.modules, `${name}.lua`)
    if (!existsSync(path)) return undefined
    const file = relative(this.#folders.root, path)
    const original = readLines(path)
    const lines = stripComments(original.join('\n'))
    const functions = this.#functions(file, original)
    const [requires, requiresAtOnce]: [string[], string[]] = [[], []]
    for (const [index, line] of lines.entries()) {
      const required = REQUIRE.exec(line)
      if (!required) {
        this.#checkBody(file, index + 1, line)
        continue
      }
      lines[index] = this.#require(file, index + 1, required, requires)
      const isInFunction = functions.some(({ from, to }) => from < index && index < to)
      if (!isInFunction) requiresAtOnce.push(required[3] as string)
    }
    const last = lines.findLast((line) => line !== '') ?? ''
    if (!/^return\b/.test(last)) this.#report(file, lines.length, 'a module ends with `return` of its table')
    const identifier = identifierOf(name)
    const table = /^return (\w+)$/.exec(last)?.[1] ?? ''
    for (const [index, line] of lines.entries()) {
      const owner = /^function (\w+)\./.exec(line)?.[1] ?? table
      if (owner !== table)
        this.#report(file, index + 1, `${owner} is a table with functions: give it a module of its own`)
    }
    const code = readCode(lines.map(withoutStrings), { table, identifier })
    const assigned = lines.flatMap((line) => new RegExp(`^(?:function )?${table}\\.(\\w+)`).exec(line)?.[1] ?? [])
    const fields = new Set(assigned)
    const module = { file, identifier, lines, requires, requiresAtOnce, functions, fields, code, table }
    this.#modules.set(name, module)
    return module
  }

  #functions(file: string, lines: readonly string[]): LuaFunction[] {
    const found = findFunctions(lines)
    if (typeof found !== 'number') return found
    this.#report(
      file,
      found + 1,
      'a function at the top of a module ends with `end` on a line of its own, not indented',
    )
    return []
  }

  /** Every module of the folder, whether a script needs it or not. */
  modules(): void {
    for (const fileName of luaFiles(this.#folders.modules)) this.module(basename(fileName, '.lua'))
    const all = [...this.#modules.values()].filter((module) => module !== undefined)
    const byIdentifier = new Map(all.map((module) => [module.identifier, module]))
    for (const { file, code } of all) this.#checkFields(file, code, byIdentifier)
  }

  #checkFields(file: string, code: LuaCode, modules: ReadonlyMap<string, LuaModule>): void {
    for (const { line, name } of missingFields(code, modules)) {
      this.#report(file, line + 1, `there is no ${name}`)
    }
  }

  /** What a require line becomes: a call that makes the module the first time. */
  #require(file: string, line: number, match: RegExpExecArray, requires: string[]): string {
    const [, local = '', , name = ''] = match
    if (!existsSync(join(this.#folders.modules, `${name}.lua`))) {
      const known = luaFiles(this.#folders.modules).map((each) => basename(each, '.lua'))
      this.#report(file, line, `unknown module "${name}"; there are: ${known.join(', ') || 'none'}`)
      return ''
    }
    if (!requires.includes(name)) requires.push(name)
    const identifier = identifierOf(name)
    return `local ${local} = made.${identifier} or make("${identifier}")`
  }

  #checkBody(file: string, line: number, text: string): void {
    const code = withoutStrings(text)
    const position = POSITIONS.exec(code)
    if (position) {
      this.#report(file, line, `${position[1]} outside the head of a script; name it there and use the name`)
    }
    if (/\brequire\b/.test(code)) {
      this.#report(file, line, 'require is written as `local name = require "module"`, on a line of its own')
    }
  }

  /** Modules in the order in which they must stand: each after all it requires. */
  #ordered(names: readonly string[], from: string): LuaModule[] {
    const order: LuaModule[] = []
    const visit = (name: string, path: readonly string[]): void => {
      const module = this.module(name)
      if (!module || order.includes(module)) return
      if (path.includes(name)) {
        this.#report(module.file, 1, `modules require each other in a circle: ${[...path, name].join(' → ')}`)
        return
      }
      for (const required of module.requires) visit(required, [...path, name])
      if (!order.includes(module)) order.push(module)
    }
    for (const name of names) visit(name, [from])
    return order
  }

  script(fileName: string): BuiltScript {
    const path = join(this.#folders.scripts, fileName)
    const file = relative(this.#folders.root, path)
    const original = readLines(path)
    const shebang = original[0] ?? ''
    if (!/^#!lua(\s|$)/.test(shebang)) this.#report(file, 1, 'a script begins with `#!lua`, flags after it')
    const lines = stripComments(['', ...original.slice(1)].join('\n'))
    const requires: string[] = []
    const { head, bodyFrom } = this.#readHead(file, original, lines, requires)
    const first = this.#madeAtOnce(requires)
    for (let index = bodyFrom; index < lines.length; index++) {
      const required = REQUIRE.exec(lines[index] ?? '')
      if (required) lines[index] = this.#require(file, index + 1, required, requires)
      else this.#checkBody(file, index + 1, lines[index] ?? '')
    }

    const name = basename(fileName, '.lua')
    const ordered = this.#ordered(requires, name)
    const byIdentifier = new Map(ordered.map((module) => [module.identifier, module]))
    const code = readCode(lines.map(withoutStrings))
    this.#checkFields(file, code, byIdentifier)
    const needed = reach(code, byIdentifier)
    const [eager, rare] = [
      ordered.filter((module) => first.has(module)),
      ordered.filter((module) => !first.has(module)),
    ]
    return {
      ...head,
      name,
      shebang,
      needed,
      first: eager,
      rare: rare.filter((module) => needed.has(module)),
      own: { file, lines: lines.slice(1) },
    }
  }

  /** The modules that a script makes with its first lines when these require `names`. */
  #madeAtOnce(names: readonly string[], made = new Set<LuaModule>()): Set<LuaModule> {
    for (const name of names) {
      const module = this.module(name)
      if (!module || made.has(module)) continue
      made.add(module)
      this.#madeAtOnce(module.requiresAtOnce, made)
    }
    return made
  }

  #readHead(file: string, original: string[], lines: string[], requires: string[]): { head: Head; bodyFrom: number } {
    const head: Head = { doc: [], keys: [], args: [] }
    let index = 1
    for (; original[index]?.startsWith('--'); index++) {
      head.doc.push((original[index] ?? '').replace(/^--\s?/, ''))
    }
    if (head.doc.length === 0) this.#report(file, 2, 'a script says what it does in a comment below `#!lua`')
    for (; index < lines.length; index++) {
      const line = lines[index] ?? ''
      if (line === '') continue
      const required = REQUIRE.exec(line)
      if (required) lines[index] = this.#require(file, index + 1, required, requires)
      else if (!this.#readParameter(file, index + 1, line, original[index] ?? '', head)) break
    }
    return { head, bodyFrom: index }
  }

  #readParameter(file: string, line: number, code: string, original: string, head: Head): boolean {
    const comment = original
      .slice(original.indexOf(code) + code.length)
      .replace(/^\s*--\s*/, '')
      .trim()
    const key = KEY.exec(code)
    const list = LIST_ARGUMENT.exec(code)
    const number = NUMBER_ARGUMENT.exec(code)
    const argument = number ?? STRING_ARGUMENT.exec(code)
    const local = (key ?? list ?? argument)?.[1]
    if (local === undefined) return false
    if (comment === '') this.#report(file, line, `${local} says in a comment on its line what it is`)
    const name = camelCase(key ? local.replace(/_key$/, '') : local)
    const siblings: readonly Parameter[] = key ? head.keys : head.args
    if (siblings.some((sibling) => sibling.name === name)) this.#report(file, line, `${name} is there twice`)
    const position = Number(key?.[2] ?? list?.[3] ?? argument?.[2])
    if (position !== siblings.length + 1) {
      const array = key ? 'KEYS' : 'ARGV'
      this.#report(file, line, `${array} are numbered without gaps: expected ${siblings.length + 1}, found ${position}`)
    }
    if (key) {
      head.keys.push({ name, comment })
      return true
    }
    if (head.args.at(-1)?.kind === 'list') this.#report(file, line, 'a list is the last argument')
    head.args.push({ name, comment, kind: list ? 'list' : number ? 'number' : 'string' })
    return true
  }
}

const TYPES: Record<ArgumentKind, string> = {
  string: 'string',
  number: 'number',
  list: 'readonly (string | number)[]',
}

function docComment(lines: readonly string[], indent: string): string {
  const safe = lines.map((line) => line.replaceAll('*/', '*∕'))
  if (safe.length === 1) return `${indent}/** ${safe[0]} */\n`
  return `${indent}/**\n${safe.map((line) => `${indent} * ${line}`.trimEnd()).join('\n')}\n${indent} */\n`
}

function objectType(fields: readonly (Parameter & { type: string })[]): string {
  if (fields.length === 0) return '  Record<never, never>'
  const lines = fields.map(({ name, comment, type }) => `${docComment([comment], '    ')}    ${name}: ${type}\n`)
  return `  {\n${lines.join('')}  }`
}

/** One that is sent as it is made here, and written so that it takes its modules from those of all scripts. */
function textOf({ shebang, first, rare, needed, own }: BuiltScript): { text: ScriptParts; written: string } {
  const part = (module: LuaModule) => partOf(module, needed.get(module) as Set<LuaFunction>)
  const parts = (modules: LuaModule[]) =>
    modules.map((module) => ({ name: module.identifier, module: makingOf(module), ...part(module) }))
  const write = (module: LuaModule) => {
    const { instead, without } = part(module)
    return `{ name: '${module.identifier}', module: modules.${module.identifier}, instead: ${JSON.stringify(instead)}, without: ${JSON.stringify(without)} }`
  }
  const [firstOnes, rareOnes] = [first, rare].map((modules) => modules.map(write).join(', '))
  return {
    text: { shebang, first: parts(first), rare: parts(rare), own },
    written: `{ shebang: ${JSON.stringify(shebang)}, first: [${firstOnes}], rare: [${rareOnes}], own: ${JSON.stringify(own)} }`,
  }
}

function scriptConst(script: BuiltScript): string {
  const keys = objectType(script.keys.map((key) => ({ ...key, type: 'string' })))
  const args = objectType(script.args.map((argument) => ({ ...argument, type: TYPES[argument.kind] })))
  const { text, written } = textOf(script)
  const head = {
    name: script.name,
    sha: createHash('sha1').update(putTogether(text).source).digest('hex'),
    isReadOnly: /\bno-writes\b/.test(script.shebang),
    keys: script.keys.map((key) => key.name),
    args: script.args.map((argument) => ({ name: argument.name, kind: argument.kind })),
  }
  const type = `Script<\n${keys},\n${args}\n>`
  const value = `scriptOf(\n  ${JSON.stringify(head)},\n  ${written},\n)`
  return `${docComment(script.doc, '')}export const ${camelCase(script.name)}: ${type} = ${value}\n`
}

function modulesConst(scripts: readonly BuiltScript[]): string {
  const used = new Set(scripts.flatMap(({ first, rare }) => [...first, ...rare]))
  const fields = [...used].map((module) => `  ${module.identifier}: ${JSON.stringify(makingOf(module))},\n`)
  return `const modules = {\n${fields.join('')}}\n`
}

/** The text of the generated module. Throws a LuaBuildError with every problem found. */
export function buildLua(folders: LuaFolders): string {
  const builder = new LuaBuilder(folders)
  builder.modules()
  const scripts = luaFiles(folders.scripts).map((fileName) => builder.script(fileName))
  if (builder.problems.length > 0) throw new LuaBuildError(builder.problems)
  const head = '// Made by scripts/build-lua.ts from src/store/scripts/*.lua. Do not edit: run `npm run build:lua`.\n'
  if (scripts.length === 0) return `${head}export {}\n`
  const imported = "import { type Script, scriptOf } from './script.ts'\n"
  return `${head}${imported}\n${modulesConst(scripts)}\n${scripts.map(scriptConst).join('\n')}`
}

/** Writes only when something changed, so that watchers and incremental builds stay quiet. */
export function writeWhenChanged(file: string, text: string): boolean {
  if (existsSync(file) && readFileSync(file, 'utf8') === text) return false
  mkdirSync(dirname(file), { recursive: true })
  writeFileSync(file, text)
  return true
}

function main(): void {
  const root = join(import.meta.dirname, '..')
  const store = join(root, 'src', 'store')
  const output = join(store, 'scripts.generated.ts')
  try {
    const text = buildLua({ root, scripts: join(store, 'scripts'), modules: join(store, 'lua') })
    if (writeWhenChanged(output, text)) console.log(`wrote ${relative(root, output)}`)
  } catch (error) {
    if (!(error instanceof LuaBuildError)) throw error
    console.error(error.message)
    process.exitCode = 1
  }
}

if (process.argv[1] === fileURLToPath(import.meta.url)) main()
