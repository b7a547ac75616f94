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
 * Its functions, and so the library, are called by what they say: versions of the package do not get into each other's
 * way, and a server that has lost them, or never had them, says that it does not know them.
 */
export interface Library {
  /** The beginning of its functions' names: see `libraryNameOf`. */
  readonly name: string
  readonly source: string
  readonly origins: readonly LuaOrigin[]
}

const FAMILY = 'sluice'
const DAY_MS = 86_400_000
/** What was loaded so many days ago, and is of another version, is taken away. Who still needs it loads it again. */
const OLD_AFTER_DAYS = 30

export function libraryNameOf(source: string): string {
  return `${FAMILY}_${createHash('sha1').update(source).digest('hex').slice(0, 12)}`
}

/**
 * What stands before the source, which makes all functions and returns them by name. While Redis loads a library it has
 * nothing of Lua's own, not even `math`, so they are made by the first call. The name of a library is used by nobody; it
 * has the day on which it was loaded.
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

const HEAD_LINES = headOf('', 0).length

/** Replaces positions in the library (`user_function:12`) by those in the files it was made from. */
export function locate({ origins }: Library, message: string): string {
  return message.replace(/@?\buser_function:(\d+)/g, (position, number: string) => {
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

async function load(redis: Pick<Redis, 'callWith'>, { name, source }: Library): Promise<void> {
  const day = Math.floor(Date.now() / DAY_MS)
  try {
    await redis.callWith('FUNCTION', ['LOAD', [...headOf(name, day), source].join('\n')])
  } catch (error) {
    // Somebody else was first.
    if (error instanceof Error && /already exists/.test(error.message)) return
    throw error
  }
  // Not waited for: it is no matter of the caller's, who has what it needs.
  void removeOld(redis, name, day).catch(() => {})
}

/** Libraries of versions that nobody may use any more. What of it fails is left to whoever loads the next. */
async function removeOld(redis: Pick<Redis, 'callWith'>, name: string, today: number): Promise<void> {
  const reply = await redis.callWith('FUNCTION', ['LIST', 'LIBRARYNAME', `${FAMILY}_*`])
  for (const [, found] of reply as [string, string][]) {
    const loadedOn = Number(/^sluice_[0-9a-f]{12}_(\d+)$/.exec(found)?.[1])
    const isOld = today - loadedOn >= OLD_AFTER_DAYS
    if (isOld && !found.startsWith(`${name}_`)) await redis.callWith('FUNCTION', ['DELETE', found])
  }
}
