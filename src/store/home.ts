import { StoreOutOfMemoryError } from '../errors.ts'
import { homeKey, queueKeys } from './keys.ts'
import type { Redis } from './redis.ts'
import { repeatWhileUnavailable } from './repeat.ts'
import { Requests } from './requests.ts'
import { readCounts } from './scripts/read-counts.ts'

const REPEATED_FOR_MS = 45_000

/** Where a queue lives, and how many jobs keep it there. */
export interface Home {
  readonly group: string
  readonly jobs: number
}

/**
 * Notes that the queue lives in this group, unless it has jobs in another one: undefined if it lives here now. Under the
 * queue's own name, not the group's, so that everybody looks at the same place whatever group they have in mind.
 */
export async function moveIn(
  redis: Redis,
  queue: { prefix: string; name: string; group: string; client: string },
): Promise<Home | undefined> {
  const { prefix, name, group } = queue
  const key = homeKey(prefix, name)
  const stored = await repeatWhileUnavailable(async () => {
    await redis.ready()
    return ((await redis.call('GET', key)) ?? (await settle(redis, key, group))) as string | null
  }, REPEATED_FOR_MS)
  // A queue from before this was noted has no home; without shared limits it lived under its own name.
  const other = stored ?? name
  if (other === group) return undefined
  const jobs = await jobsIn(redis, { ...queue, group: other })
  if (jobs > 0) {
    if (stored === null) await redis.call('SET', key, other)
    return { group: other, jobs }
  }
  if (stored !== null) await redis.call('SET', key, group)
  return undefined
}

/** Unless somebody was faster. A full store takes no note: work goes on without, and the next process makes it. */
async function settle(redis: Redis, key: string, group: string): Promise<unknown> {
  try {
    return await redis.call('SET', key, group, 'NX', 'GET')
  } catch (error) {
    if (error instanceof StoreOutOfMemoryError) return null
    throw error
  }
}

/** Waiting, delayed and running. */
async function jobsIn(
  redis: Redis,
  { prefix, name, group, client }: { prefix: string; name: string; group: string; client: string },
): Promise<number> {
  const keys = queueKeys(prefix, name, client, group)
  if ((await redis.call('EXISTS', keys.queue)) === 0) return 0
  const register = async (): Promise<void> => {
    throw new Error(`the queue "${name}" has gone from group "${group}" this moment`)
  }
  const { waiting, delayed, running } = await readCounts(new Requests({ client, redis, keys, register }))
  return waiting + delayed + running
}
