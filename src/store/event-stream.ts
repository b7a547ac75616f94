import type { QueueKeys } from './keys.ts'
import type { Redis } from './redis.ts'

/** One entry of a queue's stream, its fields as they are stored. */
export interface StreamEntry {
  readonly id: string
  readonly fields: ReadonlyMap<string, string>
}

/**
 * Entries after `from`, waiting up to `blockMs` for the first. @param redis - A connection of its own: it blocks.
 */
export async function readEvents(
  redis: Redis,
  keys: QueueKeys,
  read: { from: string; count: number; blockMs: number },
): Promise<StreamEntry[]> {
  const args = ['COUNT', read.count, 'BLOCK', read.blockMs, 'STREAMS', keys.events, read.from]
  const reply = (await redis.block('XREAD', args, read.blockMs)) as [string, [string, string[]][]][] | null
  return (reply?.[0]?.[1] ?? []).map(([id, flat]) => {
    const fields = new Map<string, string>()
    for (let at = 0; at < flat.length; at += 2) fields.set(flat[at] as string, flat[at + 1] as string)
    return { id, fields }
  })
}

/** The id of the last entry; `0-0` while there is none. */
export async function lastEventId(redis: Redis, keys: QueueKeys): Promise<string> {
  const reply = (await redis.call('XREVRANGE', keys.events, '+', '-', 'COUNT', 1)) as [string, string[]][]
  return reply[0]?.[0] ?? '0-0'
}
