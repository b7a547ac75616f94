import { setTimeout as sleep } from 'node:timers/promises'
import {
  isSluiceError,
  ScriptError,
  StoreOutOfMemoryError,
  StoreUnavailableError,
  UnsupportedRedisError,
} from '../errors.ts'
import { functionNameOf, type Library, loadLibrary, locate, scriptText } from './library.ts'
import type { Redis } from './redis.ts'

export type ScriptValue = string | number | readonly (string | number)[]

/**
 * A Lua script with names instead of positions, one function of a library. `npm run build:lua` writes these from
 * src/store/scripts/*.lua; nobody else makes one.
 */
export interface Script<
  Keys extends { [Name in keyof Keys]: string },
  Args extends { [Name in keyof Args]: ScriptValue },
> {
  readonly name: string
  readonly library: Library
  /** What Redis knows it by. */
  readonly calledAs: string
  /** What Redis lets it do, and when: `no-writes`, `allow-oom`. */
  readonly flags: readonly string[]
  /** In the order of KEYS. */
  readonly keys: readonly (keyof Keys & string)[]
  /** In the order of ARGV. A list is always the last and takes all that follows. */
  readonly args: readonly { readonly name: keyof Args & string; readonly kind: 'string' | 'number' | 'list' }[]
}

/** Redis refuses it to write. */
export function isReadOnly({ flags }: Pick<Script<never, never>, 'flags'>): boolean {
  return flags.includes('no-writes')
}

// From here on JavaScript writes numbers with an exponent.
const EXPONENT_FROM = 1e21

// Functions that are gone again as soon as they are loaded are loaded again so often.
const MOST_LOADS = 10
// Of many who find out at once that a server has lost its functions, most can leave the loading to others.
const LOAD_WITHIN_MS = 30

type ScriptRedis = Pick<Redis, 'callWith' | 'at' | 'scriptTimes' | 'nowUs'>

/**
 * Runs a script by its name, which has the hash of the library, and loads that when the server does not know it: a flush,
 * a restart or a server that has taken over a slot costs a moment and some requests. A full server takes no library: there
 * the script is run by its text, which Redis allows to those that make room. Rejects with what the port rejects with
 * (StoreUnavailableError, StoreOutOfMemoryError) or, for an error in the script itself, a ScriptError.
 */
export async function runScript<
  Keys extends { [Name in keyof Keys]: string },
  Args extends { [Name in keyof Args]: ScriptValue },
>(redis: ScriptRedis, script: Script<Keys, Args>, keys: NoInfer<Keys>, args: NoInfer<Args>): Promise<unknown> {
  const flat = flatten(script, keys, args)
  if (redis.nowUs !== undefined) giveNow(script, flat, redis.nowUs)
  const sentAt = performance.now()
  const reply = await send(redis, script, flat)
  redis.scriptTimes?.observe(script.name, performance.now() - sentAt)
  return reply
}

async function send(
  redis: ScriptRedis,
  script: Script<never, never>,
  flat: readonly (string | number)[],
): Promise<unknown> {
  for (let tries = 0; ; tries++) {
    try {
      return await redis.callWith('FCALL', flat)
    } catch (error) {
      if (!isUnknownFunction(error) || tries > MOST_LOADS) throw scriptFailure(script, error)
    }
    if (tries === 0) {
      // Who goes by the time of a test could not tell that somebody waits here.
      if (redis.nowUs === undefined) await sleep(Math.random() * LOAD_WITHIN_MS)
    } else if (!(await isLoaded(redis.at(String(flat[2])), script))) {
      return sendWhole(redis, script, flat)
    }
  }
}

/** False when the server takes nothing that is written, and so no library, but may still run what is to go on then. */
async function isLoaded(redis: Pick<Redis, 'callWith'>, script: Script<never, never>): Promise<boolean> {
  try {
    await loadLibrary(redis, script.library)
    return true
  } catch (error) {
    if (error instanceof StoreOutOfMemoryError || isRefusedForNow(error)) return false
    // Whatever became of the loading: the script was not run.
    if (error instanceof StoreUnavailableError) {
      throw new StoreUnavailableError({ reason: error.reason, outcome: 'not-sent', cause: error })
    }
    throw scriptFailure(script, error)
  }
}

/** Too few replicas are there, or the disk is full: a server then refuses what is not declared to be harmless. */
function isRefusedForNow(error: unknown): boolean {
  return error instanceof StoreUnavailableError && /^(NOREPLICAS|MISCONF)\b/.test(error.reason)
}

async function sendWhole(
  redis: ScriptRedis,
  script: Script<never, never>,
  [, ...keysAndArgs]: readonly (string | number)[],
): Promise<unknown> {
  const text = scriptText(script.library, functionNameOf(script.name), script.flags)
  try {
    return await redis.callWith('EVAL', [text, ...keysAndArgs])
  } catch (error) {
    throw scriptFailure(script, error)
  }
}

/** [name, number of keys, ...KEYS, ...ARGV] in one array of the right size: this runs for every claim. */
function flatten<Keys extends { [Name in keyof Keys]: string }, Args extends { [Name in keyof Args]: ScriptValue }>(
  script: Script<Keys, Args>,
  keys: Keys,
  args: Args,
): (string | number)[] {
  const keyCount = script.keys.length
  const argCount = script.args.length
  const last = script.args[argCount - 1]
  const list = last?.kind === 'list' ? (args[last.name] as readonly (string | number)[]) : undefined
  const single = list ? argCount - 1 : argCount
  const flat = new Array<string | number>(2 + keyCount + single + (list?.length ?? 0))
  flat[0] = script.calledAs
  flat[1] = keyCount
  let at = 2
  for (let index = 0; index < keyCount; index++) flat[at++] = keys[script.keys[index] as keyof Keys]
  for (let index = 0; index < single; index++) {
    const name = (script.args[index] as { name: keyof Args & string }).name
    flat[at++] = encode(args[name] as string | number, script.name, name)
  }
  if (list) {
    for (let index = 0; index < list.length; index++) {
      flat[at++] = encode(list[index] as string | number, script.name, (last as { name: string }).name)
    }
  }
  return flat
}

/** Puts the time of a test where the caller left it to the server. It is the first argument of all scripts that ask. */
function giveNow(script: Script<never, never>, flat: (string | number)[], nowUs: string): void {
  const [first] = script.args as readonly { readonly name: string }[]
  const at = 2 + script.keys.length
  if (first?.name === 'nowGiven' && flat[at] === '') flat[at] = nowUs
}

function encode(value: string | number, script: string, name: string): string | number {
  if (typeof value === 'string') return value
  if (!Number.isFinite(value))
    throw new TypeError(`${script}: ${name} must be a string or a finite number, not ${value}`)
  return value >= EXPONENT_FROM || value <= -EXPONENT_FROM ? BigInt(value).toString() : value
}

function isUnknownFunction(error: unknown): boolean {
  return error instanceof Error && error.message.startsWith('ERR Function not found')
}

function scriptFailure(script: Script<never, never>, error: unknown): unknown {
  if (isSluiceError(error) || !(error instanceof Error)) return error
  if (/^ERR unknown command\b.*\b(FCALL|FUNCTION)\b/i.test(error.message)) {
    return new UnsupportedRedisError({ problem: `The server has no functions: use Redis 7.0 or newer, or Valkey` })
  }
  return new ScriptError({ script: script.name, detail: locate(script.library, error.message), cause: error })
}
