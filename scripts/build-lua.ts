/**
 * Turns src/store/scripts/*.lua and the modules they require (src/store/lua/*.lua) into one typed module,
 * src/store/scripts.generated.ts: the text of one library of Redis functions (see library.ts), and for each script what
 * calls it. The head of a script is its signature:
 *
 *   #!lua flags=allow-oom
 *   -- What the script does, and what it replies.
 *   local bucket = require "bucket"
 *   local ready_key = KEYS[1] -- zset: tenant → fairness score        → keys.ready: string
 *   local wanted = tonumber(ARGV[1]) -- jobs                          → args.wanted: number
 *   local client = ARGV[2] -- who asks                                → args.client: string
 *   local ids, ids_from = ARGV, 3 -- list: jobs that are done         → args.ids: list, always the last
 *
 * Modules stand in the library once each, in order of dependency, and run once, with the first call; a script is a
 * function, which runs for each call. Lines of a file stay together and keep their count, so that `origins` can lead from
 * a line in a Lua error back to file and line.
 */
import { existsSync, mkdirSync, readdirSync, readFileSync, writeFileSync } from 'node:fs'
import { basename, dirname, join, relative } from 'node:path'
import { fileURLToPath } from 'node:url'
import { functionNameOf, type LuaOrigin, libraryNameOf } from '../src/store/library.ts'
import { missingFields } from './lua-fields.ts'

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

/** A file of Lua as it stands in the library. */
interface LuaFile {
  file: string
  /** Without comments, and without what requires modules. */
  lines: string[]
  /** What it calls the modules that it requires. */
  requires: Map<string, string>
}

interface LuaModule extends LuaFile {
  /** What it calls itself. */
  table: string
  /** What others find in its table. */
  fields: Set<string>
}

interface LuaScript extends LuaFile, Head {
  name: string
  flags: string[]
}

const REQUIRE = /^local\s+([A-Za-z_]\w*)\s*=\s*require\s*\(?\s*(["'])([^"']+)\2\s*\)?$/
const KEY = /^local\s+([A-Za-z_]\w*)\s*=\s*KEYS\[(\d+)\]$/
const STRING_ARGUMENT = /^local\s+([A-Za-z_]\w*)\s*=\s*ARGV\[(\d+)\]$/
const NUMBER_ARGUMENT = /^local\s+([A-Za-z_]\w*)\s*=\s*tonumber\(ARGV\[(\d+)\]\)$/
const LIST_ARGUMENT = /^local\s+([A-Za-z_]\w*)\s*,\s*([A-Za-z_]\w*)\s*=\s*ARGV\s*,\s*(\d+)$/
/** What is written to without an assignment. */
const WRITTEN = /\b(?:table\.(?:insert|remove|sort)|rawset|setmetatable)\(\s*([A-Za-z_]\w*)/g
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

/** What the statements of a line assign to, without the elements: `seen[#seen + 1], a.b = 1, 2` to `seen` and `a.b`. */
function assignedIn(line: string): string[] {
  let bare = line
  while (/\[[^[\]]*\]/.test(bare)) bare = bare.replace(/\[[^[\]]*\]/g, '')
  return bare.split(/\b(?:then|do|else|repeat)\b|;/).flatMap((statement) => {
    const [, targets = ''] = /^\s*([\w.,\s]+?)\s*=(?!=)/.exec(statement) ?? []
    return targets === '' ? [] : targets.split(',').map((target) => target.trim())
  })
}

function readLines(file: string): string[] {
  return readFileSync(file, 'utf8').replace(/\r\n/g, '\n').replace(/\n+$/, '').split('\n')
}

function camelCase(name: string): string {
  return name.replace(/[-_]+([A-Za-z0-9])/g, (_, letter: string) => letter.toUpperCase())
}

function luaFiles(folder: string): string[] {
  if (!existsSync(folder)) return []
  return readdirSync(folder)
    .filter((name) => name.endsWith('.lua'))
    .sort()
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
    if (!/^[a-z]\w*$/.test(name)) this.#report(file, 1, 'a module has a name that Lua can have: with _ between words')
    const original = readLines(path)
    const lines = stripComments(original.join('\n'))
    const last = lines.findLastIndex((line) => line !== '')
    const table = /^return (\w+)$/.exec(lines[last] ?? '')?.[1] ?? ''
    if (table === '') this.#report(file, lines.length, 'a module ends with `return` and the name of its table')
    this.#checkMadeOnce(file, original)
    const code: LuaFile = { file, lines, requires: new Map() }
    this.#readBody(code, original, 0)
    const fields = new Set<string>()
    for (const [index, line] of lines.entries()) {
      const owner = /^function (\w+)\./.exec(line)?.[1] ?? table
      if (owner !== table)
        this.#report(file, index + 1, `${owner} is a table with functions: give it a module of its own`)
      const field = new RegExp(`^(?:function )?${table}\\.(\\w+)`).exec(line)?.[1]
      if (field !== undefined) fields.add(field)
    }
    // It leaves itself in `modules`, where others find it.
    lines[last] = (lines[last] as string).replace(/^return\b/, `modules.${name} =`)
    const module = { ...code, table, fields }
    this.#modules.set(name, module)
    return module
  }

  /** A module neither goes by what one call has found, nor lets one keep anything in it. */
  #checkMadeOnce(file: string, original: readonly string[]): void {
    const names = (line: string) => /^local (?:function )?([\w, ]+?)(?: =|\(|$)/.exec(line)?.[1]?.split(', ') ?? []
    this.#checkShared(file, original, new Set(original.flatMap(names)))
    for (const [index, line] of original.entries()) {
      if (/^[^\s-].*\bredis\./.test(line)) this.#report(file, index + 1, 'Redis is asked by functions of a module only')
    }
  }

  /**
   * A module is made once, for all calls of all queues: what one of them keeps in it, the others find. What is handed on
   * under another name is not seen here, but by the tests of scripts (guarded-library.ts).
   * @param shared - Names that stand for something of that kind.
   */
  #checkShared(file: string, original: readonly string[], shared: ReadonlySet<string>): void {
    const stripped = stripComments(original.join('\n')).map(withoutStrings)
    let braces = 0
    for (const [index, line] of stripped.entries()) {
      const isInTable = braces > 0
      braces += line.split('{').length - line.split('}').length
      // At the top it is the module that is made; a bare name within braces is a field of what stands there.
      if (!/^\s/.test(original[index] ?? '') || (isInTable && /^\w+ =/.test(line))) continue
      const written = [...assignedIn(line), ...Array.from(line.matchAll(WRITTEN), ([, name = '']) => name)]
      const name = written.find((each) => shared.has(/^\w+/.exec(each)?.[0] ?? ''))
      if (name !== undefined) this.#report(file, index + 1, `all calls share this: nothing may be written to ${name}`)
    }
  }

  /** Every module of the folder, whether a script needs it or not, each after all that it requires. */
  modules(): LuaModule[] {
    const ordered: LuaModule[] = []
    const visit = (name: string, path: readonly string[]): void => {
      const module = this.module(name)
      if (!module || ordered.includes(module)) return
      if (path.includes(name)) {
        this.#report(module.file, 1, `modules require each other in a circle: ${[...path, name].join(' → ')}`)
        return
      }
      for (const required of module.requires.values()) visit(required, [...path, name])
      if (!ordered.includes(module)) ordered.push(module)
    }
    for (const fileName of luaFiles(this.#folders.modules)) visit(basename(fileName, '.lua'), [])
    for (const module of ordered) this.#checkFields(module, [module.table, basename(module.file, '.lua')])
    return ordered
  }

  #checkFields({ file, lines, requires }: LuaFile, ...own: [name: string, module: string][]): void {
    const names = [...requires, ...own].flatMap(([name, module]) => {
      const fields = this.module(module)?.fields
      return fields ? [[name, fields] as const] : []
    })
    for (const { line, name } of missingFields(lines.map(withoutStrings), new Map(names))) {
      this.#report(file, line + 1, `there is no ${name}`)
    }
  }

  #readBody(code: LuaFile, original: readonly string[], from: number): void {
    for (let index = from; index < code.lines.length; index++) {
      const line = code.lines[index] ?? ''
      if (!this.#readRequire(code, original, index)) this.#checkBody(code.file, index + 1, line)
    }
  }

  /** False when the line is none that requires a module. */
  #readRequire(code: LuaFile, original: readonly string[], index: number): boolean {
    const match = REQUIRE.exec(code.lines[index] ?? '')
    if (!match) return false
    const [, local = '', , name = ''] = match
    if (!existsSync(join(this.#folders.modules, `${name}.lua`))) {
      const known = luaFiles(this.#folders.modules).map((each) => basename(each, '.lua'))
      this.#report(code.file, index + 1, `unknown module "${name}"; there are: ${known.join(', ') || 'none'}`)
    } else if (/^\s/.test(original[index] ?? '')) {
      this.#report(
        code.file,
        index + 1,
        `"${name}" is required at the top of the file: modules are made once, not by calls`,
      )
    }
    code.requires.set(local, name)
    code.lines[index] = ''
    return true
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

  script(fileName: string): LuaScript {
    const path = join(this.#folders.scripts, fileName)
    const file = relative(this.#folders.root, path)
    const original = readLines(path)
    const shebang = /^#!lua(?:\s+flags=([\w,-]+))?$/.exec(original[0] ?? '')
    if (!shebang) this.#report(file, 1, 'a script begins with `#!lua`, flags after it')
    const lines = stripComments(['', ...original.slice(1)].join('\n'))
    const code: LuaFile = { file, lines, requires: new Map() }
    const { head, bodyFrom } = this.#readHead(code, original)
    this.#readBody(code, original, bodyFrom)
    // All of it runs for each call.
    const atTop = original.map((line) => (line === '' || /^\s/.test(line) ? line : ` ${line}`))
    this.#checkShared(file, atTop, new Set(code.requires.keys()))
    this.#checkFields(code)
    return { ...code, ...head, name: basename(fileName, '.lua'), flags: shebang?.[1]?.split(',') ?? [] }
  }

  #readHead(code: LuaFile, original: readonly string[]): { head: Head; bodyFrom: number } {
    const { file, lines } = code
    const head: Head = { doc: [], keys: [], args: [] }
    let index = 1
    for (; original[index]?.startsWith('--'); index++) {
      head.doc.push((original[index] ?? '').replace(/^--\s?/, ''))
    }
    if (head.doc.length === 0) this.#report(file, 2, 'a script says what it does in a comment below `#!lua`')
    for (; index < lines.length; index++) {
      const line = lines[index] ?? ''
      if (line === '' || this.#readRequire(code, original, index)) continue
      if (!this.#readParameter(file, index + 1, line, original[index] ?? '', head)) break
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

/** What Lua and Redis offer, as locals of the whole library: a global is looked up in two tables each time. */
const GLOBALS = [
  ...['redis', 'cjson', 'cmsgpack', 'struct', 'bit', 'math', 'string', 'table'],
  ...['error', 'ipairs', 'next', 'pairs', 'rawget', 'rawset', 'setmetatable', 'tonumber', 'tostring', 'type', 'unpack'],
].join(', ')

/** The text of the library behind its head, and where its lines come from. */
function libraryOf(modules: readonly LuaModule[], scripts: readonly LuaScript[]) {
  const lines: string[] = []
  const origins: LuaOrigin[] = []
  const add = ({ file, lines: of }: LuaFile, fileLine: number): void => {
    origins.push({ line: lines.length + 1, file, fileLine })
    lines.push(...of.slice(fileLine - 1))
  }
  for (const script of scripts) {
    const flags = script.flags.map((flag) => `"${flag}"`).join(', ')
    lines.push(`register("${functionNameOf(script.name)}", { ${flags} })`)
  }
  lines.push('make = function()', `local ${GLOBALS} = ${GLOBALS}`, 'local modules, scripts = {}, {}')
  for (const module of modules) {
    lines.push('do', ...find(module))
    add(module, 1)
    lines.push('end')
  }
  for (const script of scripts) {
    lines.push('do', ...find(script), `scripts.${functionNameOf(script.name)} = function(KEYS, ARGV)`)
    add(script, 2)
    lines.push('end', 'end')
  }
  lines.push('return scripts', 'end')
  return { source: lines.join('\n'), origins }
}

/** The modules that a file requires, under the names that it has for them. */
function find({ requires }: LuaFile): string[] {
  const found = [...requires.values()].map((name) => `modules.${name}`)
  return found.length > 0 ? [`local ${[...requires.keys()].join(', ')} = ${found.join(', ')}`] : []
}

function scriptConst(script: LuaScript, libraryName: string): string {
  const keys = objectType(script.keys.map((key) => ({ ...key, type: 'string' })))
  const args = objectType(script.args.map((argument) => ({ ...argument, type: TYPES[argument.kind] })))
  const fields = {
    name: script.name,
    calledAs: `${libraryName}_${functionNameOf(script.name)}`,
    flags: script.flags,
    keys: script.keys.map((key) => key.name),
    args: script.args.map((argument) => ({ name: argument.name, kind: argument.kind })),
  }
  const type = `Script<\n${keys},\n${args}\n>`
  const value = `{ library, ...${JSON.stringify(fields)} }`
  return `${docComment(script.doc, '')}export const ${camelCase(script.name)}: ${type} = ${value}\n`
}

/** The text of the generated module. Throws a LuaBuildError with every problem found. */
export function buildLua(folders: LuaFolders): string {
  const builder = new LuaBuilder(folders)
  const modules = builder.modules()
  const scripts = luaFiles(folders.scripts).map((fileName) => builder.script(fileName))
  if (builder.problems.length > 0) throw new LuaBuildError(builder.problems)
  const head = '// Made by scripts/build-lua.ts from src/store/scripts/*.lua. Do not edit: run `npm run build:lua`.\n'
  if (scripts.length === 0) return `${head}export {}\n`
  const imported = "import type { Library } from './library.ts'\nimport type { Script } from './script.ts'\n"
  const { source, origins } = libraryOf(modules, scripts)
  const name = libraryNameOf(source)
  const library = `export const library: Library = ${JSON.stringify({ name, source, origins })}\n`
  return [`${head}${imported}`, library, ...scripts.map((script) => scriptConst(script, name))].join('\n')
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
