import { isSluiceError, ScriptError } from '../errors.ts'
import type { Redis } from './redis.ts'
import { putTogether, type ScriptOrigin, type ScriptParts } from './script-text.ts'

export type ScriptValue = string | number | readonly (string | number)[]

/**
 * A Lua script with names instead of positions. `npm run build:lua` writes these from src/store/scripts/*.lua;
 * nobody else makes one.
 */
export interface Script<
  Keys extends { [Name in keyof Keys]: string },
  Args extends { [Name in keyof Args]: ScriptValue },
> {
  readonly name: string
  /** SHA-1 of the source: what Redis knows the script by. */
  readonly sha: string
  /** It has the flag by which Redis refuses it to write. */
  readonly isReadOnly: boolean
  readonly source: string
  /** In the order of KEYS. */
  readonly keys: readonly (keyof Keys & string)[]
  /** In the order of ARGV. A list is always the last and takes all that follows. */
  readonly args: readonly { readonly name: keyof Args & string; readonly kind: 'string' | 'number' | 'list' }[]
  readonly origins: readonly ScriptOrigin[]
}

/** A script whose text is put together when somebody asks for it: most processes send few, and Redis knows them. */
export function scriptOf<
  Keys extends { [Name in keyof Keys]: string },
  Args extends { [Name in keyof Args]: ScriptValue },
>(
  head: Pick<Script<Keys, Args>, 'name' | 'sha' | 'isReadOnly' | 'keys' | 'args'>,
  parts: ScriptParts,
): Script<Keys, Args> {
  let text: ReturnType<typeof putTogether> | undefined
  const read = () => {
    text ??= putTogether(parts)
    return text
  }
  return {
    ...head,
    get source() {
      return read().source
    },
    get origins() {
      return read().origins
    },
  }
}

// From here on JavaScript writes numbers with an exponent.
const EXPONENT_FROM = 1e21

/**
 * Runs a script by its hash, and by its text when the server does not know it: EVAL loads and runs in one step, so
 * a SCRIPT FLUSH or a restart between the two calls changes nothing. Rejects with what the port rejects with
 * (StoreUnavailableError, StoreOutOfMemoryError) or, for an error in the script itself, a ScriptError.
 * @param how - `isWhole`: by its text at once, in one request also where the server does not know it.
 */
export async function runScript<
  Keys extends { [Name in keyof Keys]: string },
  Args extends { [Name in keyof Args]: ScriptValue },
>(
  redis: Pick<Redis, 'callWith' | 'scriptTimes' | 'nowUs'>,
  script: Script<Keys, Args>,
  keys: NoInfer<Keys>,
  args: NoInfer<Args>,
  how: { readonly isWhole?: boolean } = {},
): Promise<unknown> {
  const flat = flatten(script, keys, args)
  if (redis.nowUs !== undefined) giveNow(script, flat, redis.nowUs)
  const sentAt = performance.now()
  const reply = how.isWhole ? await sendWhole(redis, script, flat) : await send(redis, script, flat)
  redis.scriptTimes?.observe(script.name, performance.now() - sentAt)
  return reply
}

async function send(
  redis: Pick<Redis, 'callWith'>,
  script: Script<never, never>,
  flat: (string | number)[],
): Promise<unknown> {
  try {
    return await redis.callWith('EVALSHA', flat)
  } catch (error) {
    if (!isUnknownScript(error)) throw scriptFailure(script, error)
  }
  return sendWhole(redis, script, flat)
}

async function sendWhole(
  redis: Pick<Redis, 'callWith'>,
  script: Script<never, never>,
  flat: (string | number)[],
): Promise<unknown> {
  flat[0] = script.source
  try {
    return await redis.callWith('EVAL', flat)
  } catch (error) {
    throw scriptFailure(script, error)
  }
}

/** [sha, number of keys, ...KEYS, ...ARGV] in one array of the right size: this runs for every claim. */
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
  flat[0] = script.sha
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

function isUnknownScript(error: unknown): boolean {
  return error instanceof Error && error.message.startsWith('NOSCRIPT')
}

function scriptFailure(script: Script<never, never>, error: unknown): unknown {
  if (isSluiceError(error) || !(error instanceof Error)) return error
  return new ScriptError({ script: script.name, detail: locate(script, error.message), cause: error })
}

/** Replaces positions in the built text (`user_script:12`) by those in the files it was made from. */
function locate(script: Script<never, never>, message: string): string {
  return message.replace(/@?\buser_script:(\d+)/g, (position, number: string) => {
    const line = Number(number)
    const origin = script.origins.findLast((each) => each.line <= line)
    return origin ? `${origin.file}:${line - origin.line + origin.fileLine}` : position
  })
}
