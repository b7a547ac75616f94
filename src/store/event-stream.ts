import type { QueueKeys } from './keys.ts'
import type { Redis } from './redis.ts'

/** One entry of a queue's stream, its fields as they are stored. */
export interface StreamEntry {
  readonly id: string
  readonly fields: ReadonlyMap<string, string>
}

/** Entries after `from`. @param read - `blockMs`: how long to wait for the first, on a connection of its own. */
export async function readEvents(
  redis: Redis,
  keys: QueueKeys,
  read: { from: string; count: number; blockMs?: number },
): Promise<StreamEntry[]> {
  const { from, count, blockMs } = read
  const streams = ['STREAMS', keys.events, from]
  const reply =
    blockMs === undefined
      ? await redis.callWith('XREAD', ['COUNT', count, ...streams])
      : await redis.block('XREAD', ['COUNT', count, 'BLOCK', blockMs, ...streams], blockMs)
  return ((reply as [string, [string, string[]][]][] | null)?.[0]?.[1] ?? []).map(([id, flat]) => {
    const fields = new Map<string, string>()
    for (let at = 0; at < flat.length; at += 2) fields.set(flat[at] as string, flat[at + 1] as string)
    return { id, fields }
  })
}

/** Whether an entry came after another: `<ms>-<number>`, the number 0 if it is left out. */
export function isAfter(id: string, other: string): boolean {
  const [ms = '', number = '0'] = id.split('-')
  const [otherMs = '', otherNumber = '0'] = other.split('-')
  return Number(ms) === Number(otherMs) ? Number(number) > Number(otherNumber) : Number(ms) > Number(otherMs)
}

/**
 * An id that comes before all entries of the time since an instant, by the clock of the server that makes them.
 * @param ageMs - How long ago that was; asked when the server has said what time it is, so that it errs on the early side.
 */
export async function eventIdBefore(redis: Redis, keys: QueueKeys, ageMs: () => number): Promise<string> {
  const [seconds, micros] = (await redis.at(keys.events).call('TIME')) as [string, string]
  const instant = Number(seconds) * 1_000 + Math.floor(Number(micros) / 1_000) - Math.ceil(ageMs())
  return String(Math.max(0, instant - 1))
}

/** The id of the last entry; `0-0` while there is none. */
export async function lastEventId(redis: Redis, keys: QueueKeys): Promise<string> {
  const reply = (await redis.call('XREVRANGE', keys.events, '+', '-', 'COUNT', 1)) as [string, string[]][]
  return reply[0]?.[0] ?? '0-0'
}
