import type { QueueKeys } from './keys.ts'
import type { Redis } from './redis.ts'

/** The instant of what waits for no instant, such as a tenant that waits for a slot: `time.NEVER` of lua/time.lua. */
export const NEVER_US = 9e15

/** When the first of them is due, in ms since 1970 by the server's clock; undefined: none is. */
export interface NextDue {
  /** A delayed job. */
  readonly delayed: number | undefined
  /** A tenant that a limit has parked. */
  readonly parked: number | undefined
}

export async function readNextDue(redis: Redis, keys: QueueKeys): Promise<NextDue> {
  const [delayed, parked] = await Promise.all([firstOf(redis, keys.delayed), firstOf(redis, keys.parked)])
  return { delayed, parked }
}

async function firstOf(redis: Redis, key: string): Promise<number | undefined> {
  const [, score] = (await redis.call('ZRANGE', key, 0, 0, 'WITHSCORES')) as string[]
  return score === undefined || Number(score) >= NEVER_US ? undefined : Number(score) / 1000
}
