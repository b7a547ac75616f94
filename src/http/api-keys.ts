import { createHash, randomBytes, timingSafeEqual } from 'node:crypto'
import { checkOptions, oneOf, optional, parsed, type Rule, text } from '../assert.ts'
import { InvalidOptionsError, type OptionProblem } from '../errors.ts'
import { nameRule } from '../store/names.ts'
import { type Role, roles } from './roles.ts'

/** A key as the server's configuration holds it. The key itself is nowhere: only its digest is. */
export interface ApiKey {
  /** What the audit log and the rate limit call it. */
  readonly id: string
  /** From `createApiKey`: `sha256:` and 64 hexadecimal digits. */
  readonly hash: string
  readonly role: Role
  /** The tenant of a key of role `tenant`; other roles have none. */
  readonly tenant?: string
  /**
   * The queues it can see.
   * @default all
   */
  readonly queues?: readonly string[]
  /** After this moment it is refused: ms since 1970, or a date as text. */
  readonly expiresAt?: number | string
}

/** Who sends a request, by the key they sent. */
export interface Caller {
  readonly id: string
  readonly role: Role
  readonly tenant: string | undefined
  readonly queues: ReadonlySet<string> | undefined
}

const KEY_BYTES = 32
const keyPattern = /^slk_[A-Za-z0-9_-]{43}$/

/**
 * A new key. Give `key` to who will use it and put `hash` into the configuration; the key cannot be had from it. Plain
 * SHA-256 is enough for 256 random bits: there is nothing to guess that a slow hash would protect.
 */
export function createApiKey(): { readonly key: string; readonly hash: string } {
  const key = `slk_${randomBytes(KEY_BYTES).toString('base64url')}`
  return { key, hash: `sha256:${digest(key).toString('hex')}` }
}

function digest(key: string): Buffer {
  return createHash('sha256').update(key).digest()
}

interface KnownKey {
  readonly hash: Buffer
  readonly expiresAt: number
  readonly caller: Caller
}

export type KeyRefusal = 'malformed' | 'unknown' | 'expired'

/** The keys of a server. */
export class KeyRing {
  readonly #keys: readonly KnownKey[]

  constructor(keys: readonly ApiKey[]) {
    this.#keys = checkKeys(keys)
  }

  /** Without keys everybody is admin, which is why such a server listens to its own machine only. */
  get isEmpty(): boolean {
    return this.#keys.length === 0
  }

  /** Compares with every key, each in constant time, so that the time taken says nothing about any of them. */
  find(key: string, now: number): Caller | KeyRefusal {
    if (!keyPattern.test(key)) return 'malformed'
    const presented = digest(key)
    let found: KnownKey | undefined
    for (const known of this.#keys) if (timingSafeEqual(known.hash, presented)) found = known
    if (!found) return 'unknown'
    return now < found.expiresAt ? found.caller : 'expired'
  }
}

const instantRule = parsed((value) => {
  const at = typeof value === 'number' ? value : typeof value === 'string' ? Date.parse(value) : Number.NaN
  if (!Number.isFinite(at)) throw new Error('must be ms since 1970 or a date such as 2030-01-31T00:00:00Z')
  return at
})

const queuesRule: Rule<readonly string[]> = (value, path, report) => {
  const isList = Array.isArray(value) && value.every((each) => typeof each === 'string')
  if (!isList) report(path, 'must be a list of queue names')
  return isList ? value : []
}

const keyRules = {
  id: text({ maxLength: 64, pattern: { test: /^[A-Za-z0-9._-]+$/, words: 'letters, digits, ".", "_" and "-"' } }),
  hash: text({
    pattern: { test: /^sha256:[0-9a-f]{64}$/, words: 'sha256: and 64 hexadecimal digits, as createApiKey makes it' },
    secret: true,
  }),
  role: oneOf(roles),
  tenant: optional(nameRule),
  queues: optional(queuesRule),
  expiresAt: optional(instantRule),
}

function checkKeys(keys: readonly ApiKey[]): KnownKey[] {
  const problems: OptionProblem[] = []
  const ids = new Set<string>()
  const known = keys.map((key, at) => {
    try {
      const checked = checkOptions('keys', key, keyRules, (settings, report) => {
        const { role, tenant, id } = settings
        if (role === 'tenant' && tenant === undefined) report('tenant', 'is required for the role tenant')
        if (role !== 'tenant' && tenant !== undefined) report('tenant', `is only for the role tenant, not ${role}`)
        if (ids.has(id)) report('id', `is given twice: ${id}`)
        ids.add(id)
      })
      const { id, role, tenant, queues } = checked
      return {
        hash: Buffer.from(checked.hash.slice('sha256:'.length), 'hex'),
        expiresAt: checked.expiresAt ?? Number.POSITIVE_INFINITY,
        caller: { id, role, tenant, queues: queues && new Set(queues) },
      }
    } catch (error) {
      if (!(error instanceof InvalidOptionsError)) throw error
      problems.push(...error.problems.map(({ path, problem }) => ({ path: `keys.${at}.${path}`, problem })))
      return undefined
    }
  })
  if (problems.length > 0) throw new InvalidOptionsError('the server', problems)
  return known.filter((key) => key !== undefined)
}
