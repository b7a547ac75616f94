import { createHash } from 'node:crypto'
import type { Redis } from './redis.ts'

/** From `line` of the library's text on it is `file`, from its `fileLine` on. */
export interface LuaOrigin {
  readonly line: number
  readonly file: string
  readonly fileLine: number
}

/**
 * All scripts of this version as one library of Redis functions, which stays in the server: what they share is there
 * once, and made once, where a script of its own makes it for each call. `npm run build:lua` writes it.
 *
 * Its functions are called by what the library says: versions of the package do not get into each other's way, and a
 * server that has lost them, or never had them, says that it does not know them.
 */
export interface Library {
  /** The beginning of its functions' names: see `libraryNameOf`. */
  readonly name: string
  /** Registers the functions' names, and sets `make` to what makes all functions and returns them by name. */
  readonly source: string
  readonly origins: readonly LuaOrigin[]
}

const FAMILY = 'sluice'
const SECONDS_A_DAY = 86_400
/** What was loaded so many days ago, and is of another version, is taken away. Who still needs it loads it again. */
const OLD_AFTER_DAYS = 30

/**
 * What stands before the source. While Redis loads a library it has nothing of Lua's own, not even `math`, so the
 * functions are made by the first call. The name of a library is used by nobody; it has the day on which it was loaded.
 */
function headOf(name: string, day: number): string[] {
  return [
    `#!lua name=${name}_${day}`,
    'local make, made',
    'local function register(name, flags)',
    `redis.register_function({ function_name = "${name}_" .. name, flags = flags, callback = function(keys, args)`,
    'made = made or make()',
    'return made[name](keys, args)',
    'end })',
    'end',
  ]
}

const NAMELESS_HEAD = headOf('', 0)
const HEAD_LINES = NAMELESS_HEAD.length

export function libraryNameOf(source: string): string {
  const hash = createHash('sha1')
    .update([...NAMELESS_HEAD, source].join('\n'))
    .digest('hex')
  return `${FAMILY}_${hash.slice(0, 12)}`
}

/** Of a script. Redis takes letters, digits and underscores. */
export function functionNameOf(scriptName: string): string {
  return scriptName.replaceAll('-', '_')
}

/** What Redis is given to load. @param day - On which that is, since 1970. */
export function libraryText({ name, source }: Pick<Library, 'name' | 'source'>, day: number): string {
  return [...headOf(name, day), source].join('\n')
}

/**
 * One function of it as a script of its own, for a server that takes no library. As long as it cannot be made to keep
 * one, it makes all functions for each call. Lines have the numbers that they have in the library.
 */
export function scriptText({ source }: Library, functionName: string, flags: readonly string[]): string {
  const head = [
    flags.length > 0 ? `#!lua flags=${flags.join(',')}` : '#!lua',
    'local make',
    'local function register() end',
  ]
  const filler = Array<string>(HEAD_LINES - head.length).fill('')
  return [...head, ...filler, source, `return make()["${functionName}"](KEYS, ARGV)`].join('\n')
}

/** Replaces positions in the library (`user_function:12`) by those in the files it was made from. */
export function locate({ origins }: Library, message: string): string {
  return message.replace(/@?\buser_(?:function|script):(\d+)/g, (position, number: string) => {
    const line = Number(number) - HEAD_LINES
    const origin = origins.findLast((each) => each.line <= line)
    return origin ? `${origin.file}:${line - origin.line + origin.fileLine}` : position
  })
}

const loading = new WeakMap<object, Map<string, Promise<void>>>()

/**
 * Sees to it that the server behind a connection knows the library. Many callers find out at once that it does not: one
 * of a connection loads it, the others wait for that one. Rejects with what the server says.
 */
export function loadLibrary(redis: Pick<Redis, 'callWith'>, library: Library): Promise<void> {
  const byName = loading.get(redis) ?? new Map<string, Promise<void>>()
  loading.set(redis, byName)
  const known = byName.get(library.name)
  if (known) return known
  const loaded = load(redis, library).finally(() => byName.delete(library.name))
  byName.set(library.name, loaded)
  return loaded
}

async function load(redis: Pick<Redis, 'callWith'>, library: Library): Promise<void> {
  const [seconds] = (await redis.callWith('TIME', [])) as [string, string]
  const day = Math.floor(Number(seconds) / SECONDS_A_DAY)
  try {
    await redis.callWith('FUNCTION', ['LOAD', libraryText(library, day)])
  } catch (error) {
    // Somebody else was first.
    if (error instanceof Error && /already exists/.test(error.message)) return
    throw error
  }
  // Not waited for: it is no matter of the caller's, who has what it needs. What of it fails is left to the next.
  void removeOld(redis, library.name, day).catch(() => {})
}

/**
 * Libraries of versions that nobody may use any more. The newest of the others stays, however old it is: during an
 * upgrade it is the one that most processes still use.
 */
async function removeOld(redis: Pick<Redis, 'callWith'>, name: string, today: number): Promise<void> {
  const found = (await redis.callWith('FUNCTION', ['LIST', 'LIBRARYNAME', `${FAMILY}_*`])) as [string, string][]
  const others = found.flatMap(([, library]) => {
    const [, of, day] = /^(sluice_[0-9a-f]{12})_(\d+)$/.exec(library) ?? []
    return of === undefined || of === name ? [] : [{ library, day: Number(day) }]
  })
  const [, ...older] = others.sort((a, b) => b.day - a.day)
  const old = older.filter(({ day }) => today - day >= OLD_AFTER_DAYS)
  // One that is gone by now was removed by somebody else.
  await Promise.allSettled(old.map(({ library }) => redis.callWith('FUNCTION', ['DELETE', library])))
}
