import type { QueueKeys } from './keys.ts'
import type { Redis } from './redis.ts'

/** What is pending stands among the packed numbers of the queue's state, at these places (lua/queue.lua). */
const places = { waiting: 5, delayed: 6, running: 7 } as const

/** Kept by the transitions themselves, so that reading them costs the same at any size. */
const fields = {
  submitted: 'submitted',
  succeeded: 'succeeded',
  /** Jobs that became dead letters. */
  failed: 'failed',
  canceled: 'canceled',
  retried: 'retried',
  throttled: 'throttled',
  stalled: 'stalled',
  /** Jobs given back because their grant was stale when they were to start. */
  returned: 'returned',
  released: 'released',
  unknownType: 'unknown_type',
  /** Times a limit parked a tenant. */
  parked: 'parked',
  deadLettersExpired: 'dead_expired',
  deadLettersRetried: 'revived',
  deadLettersDiscarded: 'discarded',
} as const

export type QueueCounts = Readonly<Record<keyof typeof places | keyof typeof fields, number>>

export async function readCounts(redis: Redis, keys: QueueKeys): Promise<QueueCounts> {
  const reply = (await redis.callWith('HMGET', [keys.queue, 'state', ...Object.values(fields)])) as (string | null)[]
  const [state, ...values] = reply
  const numbers = (state ?? '').split(' ')
  const counts: Record<string, number> = {}
  for (const [name, place] of Object.entries(places)) counts[name] = Number(numbers[place] ?? 0)
  Object.keys(fields).forEach((name, at) => {
    counts[name] = Number(values[at] ?? 0)
  })
  return counts as QueueCounts
}

/** Tenants with work or paused, in no order, each once. Walks the sets they stand in; what changes meanwhile may be missed. */
export async function* readTenantTokens(redis: Redis, keys: QueueKeys): AsyncGenerator<string> {
  const seen = new Set<string>()
  const sets = [keys.readyHigh, keys.readyNormal, keys.readyLow, keys.parked, keys.unparking, keys.paused]
  for (const key of sets) {
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
