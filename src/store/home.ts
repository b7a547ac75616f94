import { InvalidOptionsError, StoreOutOfMemoryError } from '../errors.ts'
import { homeKey, queueKeys } from './keys.ts'
import type { Redis } from './redis.ts'
import { repeatWhileUnavailable } from './repeat.ts'
import { Requests } from './requests.ts'
import { closeQueue } from './scripts/close-queue.ts'
import { moveHome } from './scripts/move-home.ts'
import { readCounts } from './scripts/read-counts.ts'

// Between the two groups of a queue that is on its way from one to the other. No name has it.
const TO = '\n'
// Whoever reads that a queue is on its way first ends that. More than a few only if as many processes move it to and fro.
const MOST_STEPS = 10

/** Where a queue lives, and how many jobs keep it there. */
export interface Home {
  readonly group: string
  readonly jobs: number
}

interface Resident {
  readonly prefix: string
  readonly name: string
  readonly group: string
  readonly client: string
  /** Whether an empty queue may be moved here: not by a process that has lived here and finds that it has moved away. */
  readonly mayMove: boolean
}

/**
 * Sees to it that the queue lives in this group: undefined if it does now, else where it lives. One that has jobs stays
 * where they are. Its home is noted under the queue's own name, not the group's, so that everybody looks at the same
 * place whatever group they have in mind.
 *
 * An empty queue moves in two steps: the note says from where to where, then the old place is closed, in a script that
 * makes sure that it is empty still. From then on processes that use it are told that it is not registered, come here,
 * and are refused. Whoever finds such a note takes the second step, so that it does not matter who dies in between.
 */
export async function moveIn(redis: Redis, queue: Resident): Promise<Home | undefined> {
  return repeatWhileUnavailable(async () => {
    await redis.ready()
    for (let step = 0; step < MOST_STEPS; step++) {
      const home = await stepIn(redis, queue)
      if (home !== 'again') return home
    }
    const problem = 'differ between processes, which move the queue to and fro between groups: declare the same ones'
    throw new InvalidOptionsError(`queue "${queue.name}"`, [{ path: 'limits', problem }])
  })
}

/**
 * Whether the queue still lives here, now that it is registered. Where it has moved away between the look and the
 * registration, the place that this has opened again is closed.
 */
export async function isStillHome(redis: Redis, queue: Resident): Promise<boolean> {
  const { prefix, name, group } = queue
  return repeatWhileUnavailable(async () => {
    await redis.ready()
    const noted = await redis.call('GET', homeKey(prefix, name))
    if (noted === null || noted === group) return true
    await closeQueue(redis, keysAt(queue, group))
    return false
  })
}

/**
 * The group that a queue lives in, for whoever only looks at it: where it comes from, if it is on its way. Undefined: nobody
 * has noted it.
 */
export async function homeOf(redis: Redis, prefix: string, name: string): Promise<string | undefined> {
  const noted = (await redis.call('GET', homeKey(prefix, name))) as string | null
  return noted?.split(TO)[0]
}

async function stepIn(redis: Redis, queue: Resident): Promise<Home | undefined | 'again'> {
  const { prefix, name, group, mayMove } = queue
  const key = homeKey(prefix, name)
  const noted = await read(redis, key, queue)
  const [other = name, to] = noted?.split(TO) ?? []
  if (noted !== undefined && to !== undefined) {
    const isClosed = await closeQueue(redis, keysAt(queue, other))
    await moveHome(redis, key, { from: noted, to: isClosed ? to : other })
    return 'again'
  }
  if (other === group) return undefined
  const jobs = await jobsIn(redis, queue, other)
  if (jobs > 0) return { group: other, jobs }
  // Nothing could be noted, so nobody has lived elsewhere but under the queue's own name.
  if (noted === undefined) return undefined
  if (!mayMove) return { group: other, jobs }
  await moveHome(redis, key, { from: noted, to: other + TO + group })
  return 'again'
}

/**
 * What is noted. A queue without a note may be from before there were any; without shared limits it lived under its own
 * name, so that is where it comes from. A full store takes no new note: work goes on without, and the next process makes
 * it.
 */
async function read(redis: Redis, key: string, { name, group }: Resident): Promise<string | undefined> {
  const noted = await redis.call('GET', key)
  if (noted !== null) return noted as string
  const first = group === name ? group : name + TO + group
  try {
    return ((await redis.call('SET', key, first, 'NX', 'GET')) as string | null) ?? first
  } catch (error) {
    if (error instanceof StoreOutOfMemoryError) return undefined
    throw error
  }
}

function keysAt({ prefix, name, client }: Resident, group: string) {
  return queueKeys(prefix, name, client, group)
}

/** Waiting, delayed and running. */
async function jobsIn(redis: Redis, queue: Resident, group: string): Promise<number> {
  const { name, client } = queue
  const keys = keysAt(queue, group)
  if (!(await isRegistered(redis, keys))) return 0
  const register = async (): Promise<void> => {
    throw new Error(`the queue "${name}" has gone from group "${group}" this moment`)
  }
  const { waiting, delayed, running } = await readCounts(new Requests({ client, redis, keys, register }))
  return waiting + delayed + running
}

/** Whether scripts know the queue at this place. */
export async function isRegistered(redis: Redis, keys: { readonly queue: string }): Promise<boolean> {
  return (await redis.call('HEXISTS', keys.queue, 'settings')) === 1
}
