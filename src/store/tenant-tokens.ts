import type { QueueKeys } from './keys.ts'
import type { Redis } from './redis.ts'
import { isUint64 } from './uint64.ts'

/** The sets a tenant with work, or a paused one, stands in; it may stand in several. */
function setsOf(keys: QueueKeys): readonly string[] {
  return [keys.readyHigh, keys.readyNormal, keys.readyLow, keys.parked, keys.unparking, keys.paused]
}

/** Tenants with work or paused, in no order, each once. Walks the sets they stand in; what changes meanwhile may be missed. */
export async function* readTenantTokens(redis: Redis, keys: QueueKeys): AsyncGenerator<string> {
  const seen = new Set<string>()
  for (const key of setsOf(keys)) {
    let cursor = '0'
    do {
      const [next, members] = (await redis.call('ZSCAN', key, cursor, 'COUNT', 500)) as [string, string[]]
      cursor = next
      for (let at = 0; at < members.length; at += 2) {
        const tenant = members[at] as string
        if (seen.has(tenant)) continue
        seen.add(tenant)
        yield tenant
      }
    } while (cursor !== '0')
  }
}

const SCAN_COUNT = 500
// A page looks at this many batches at most: a set whose members all stand in an earlier one as well yields none.
const MOST_BATCHES = 20

/** Where a walk stands: which set, which batch of it, and how much of the batch was taken. */
const cursorPattern = /^([0-5])\.(\d+)\.(\d{1,6})$/

export interface TenantPage {
  readonly tokens: readonly string[]
  /** Where the next page begins; undefined: there is none. A page may be short or empty and still have a next one. */
  readonly cursor: string | undefined
}

export function isTenantCursor(cursor: string): boolean {
  const [, , batch] = cursorPattern.exec(cursor) ?? []
  return batch !== undefined && isUint64(batch)
}

/**
 * At most `limit` of the tenants above, from a cursor on. Nothing is kept between pages: a tenant that stands in
 * several sets is shown with the first of them. One that moves between pages may be missed or come twice.
 */
export async function readTenantPage(
  redis: Redis,
  keys: QueueKeys,
  page: { cursor?: string | undefined; limit: number },
): Promise<TenantPage> {
  const sets = setsOf(keys)
  const tokens: string[] = []
  let [set, batch, taken] = parseCursor(page.cursor)
  for (let batches = 0; batches < MOST_BATCHES && set < sets.length; batches++) {
    const [next, found] = await readBatch(redis, sets, set, batch)
    for (; taken < found.length; taken++) {
      if (tokens.length === page.limit) return { tokens, cursor: `${set}.${batch}.${taken}` }
      const token = found[taken]
      if (token !== undefined) tokens.push(token)
    }
    taken = 0
    batch = next
    if (next === '0') set += 1
  }
  return { tokens, cursor: set < sets.length ? `${set}.${batch}.0` : undefined }
}

function parseCursor(cursor: string | undefined): [set: number, batch: string, taken: number] {
  const match = cursorPattern.exec(cursor ?? '0.0.0')
  return match ? [Number(match[1]), match[2] ?? '0', Number(match[3])] : [0, '0', 0]
}

/** One batch of a set, in place: undefined stands for a tenant that an earlier set has too. */
async function readBatch(
  redis: Redis,
  sets: readonly string[],
  set: number,
  batch: string,
): Promise<[next: string, tokens: (string | undefined)[]]> {
  const reply = await redis.call('ZSCAN', sets[set] as string, batch, 'COUNT', SCAN_COUNT)
  const [next, members] = reply as [string, string[]]
  const tokens: (string | undefined)[] = members.filter((_, at) => at % 2 === 0)
  if (tokens.length === 0) return [next, tokens]
  const names = [...(tokens as string[])]
  const earlier = await Promise.all(
    sets.slice(0, set).map((key) => redis.callWith('ZMSCORE', [key, ...names]) as Promise<(string | null)[]>),
  )
  for (const scores of earlier) {
    for (const [at, score] of scores.entries()) if (score !== null) tokens[at] = undefined
  }
  return [next, tokens]
}

/** How many tenants stand where. One that has work on two levels counts on both. */
export interface TenantCounts {
  readonly ready: { readonly high: number; readonly normal: number; readonly low: number }
  readonly parked: number
  readonly paused: number
}

export async function countTenants(redis: Redis, keys: QueueKeys): Promise<TenantCounts> {
  const counts = await Promise.all(setsOf(keys).map((key) => redis.call('ZCARD', key) as Promise<number>))
  const [high = 0, normal = 0, low = 0, parked = 0, unparking = 0, paused = 0] = counts
  return { ready: { high, normal, low }, parked: parked + unparking, paused }
}

/** Tenants that have jobs running or are paused, the first `most` that are met of each; waiting ones have an index of their own. */
export async function readBusyTokens(redis: Redis, keys: QueueKeys, most: number): Promise<string[]> {
  const [[, running], paused] = (await Promise.all([
    redis.call('HSCAN', keys.running, '0', 'COUNT', most),
    redis.call('ZRANGE', keys.paused, 0, most - 1),
  ])) as [[string, string[]], string[]]
  const busy = running.filter((_, at) => at % 2 === 0).slice(0, most)
  return [...new Set([...busy, ...paused])]
}
