import { claimKey, type QueueKeys } from './keys.ts'
import { readPresentUs } from './present.ts'
import type { Redis } from './redis.ts'

/** A process that works on a queue, as far as the store knows of it. */
export interface WorkerView {
  /** Unique for each start of a process. */
  readonly client: string
  /** Of the process, on its own machine. */
  readonly pid: number
  /** Jobs it holds now. */
  readonly running: number
  /** When it claimed the oldest of them, in ms since 1970 by the clock of Redis; undefined: it holds none. */
  readonly since: number | undefined
  /** When the first of its leases runs out unless it is renewed; undefined: it holds none. */
  readonly leasedUntil: number | undefined
  /** Whether it waits for more than it has. */
  readonly isIdle: boolean
}

/** Claims that are looked at: more than processes ever hold at once, and a bound all the same. */
const MOST_CLAIMS = 1_000
const MOST_IDLE = 1_000

interface Held {
  running: number
  since: number | undefined
  leasedUntil: number | undefined
  isIdle: boolean
}

/** Who holds jobs or waits for some, the busiest first. A process that does neither, because a limit lets none run, is not known. */
export async function readWorkers(redis: Redis, keys: QueueKeys): Promise<WorkerView[]> {
  const [nowUs, leases, idle] = (await Promise.all([
    readPresentUs(redis, keys.leases),
    redis.call('ZRANGE', keys.leases, 0, MOST_CLAIMS - 1, 'WITHSCORES'),
    redis.call('ZREVRANGE', keys.idle, 0, MOST_IDLE - 1, 'WITHSCORES'),
  ])) as [number, string[], string[]]
  const held = new Map<string, Held>()
  const of = (client: string): Held => {
    const known = held.get(client) ?? { running: 0, since: undefined, leasedUntil: undefined, isIdle: false }
    held.set(client, known)
    return known
  }
  const claims = pairs(leases).map(([member, score]) => {
    const [, fence = '', client = ''] = /^(\d+):(.*)$/s.exec(member) ?? []
    return { fence, client, untilMs: score / 1_000 }
  })
  const sizes = await Promise.all(
    claims.map(({ fence }) => redis.call('HLEN', claimKey(keys, fence)) as Promise<number>),
  )
  for (const [at, { fence, client, untilMs }] of claims.entries()) {
    const worker = of(client)
    worker.running += sizes[at] ?? 0
    // A fence is the instant of its claim, unless there were two in one microsecond.
    worker.since = Math.min(worker.since ?? Number.POSITIVE_INFINITY, Number(fence) / 1_000)
    worker.leasedUntil = Math.min(worker.leasedUntil ?? Number.POSITIVE_INFINITY, untilMs)
  }
  for (const [name, until] of pairs(idle)) if (until > nowUs) of(clientOf(name)).isIdle = true
  return [...held]
    .map(([client, found]) => ({ client, pid: pidOf(client), ...found }))
    .toSorted((a, b) => b.running - a.running || a.client.localeCompare(b.client))
}

function pairs(flat: readonly string[]): [member: string, score: number][] {
  const found: [string, number][] = []
  for (let at = 0; at < flat.length; at += 2) found.push([flat[at] as string, Number(flat[at + 1])])
  return found
}

/** The levels stand behind it where it does not serve all. */
function clientOf(idleName: string): string {
  return idleName.split(' ')[0] ?? ''
}

/** A client's name begins with it. */
function pidOf(client: string): number {
  return Number.parseInt(client.split('-')[0] ?? '', 36)
}
