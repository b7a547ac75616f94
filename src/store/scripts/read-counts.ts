import { Histogram } from '../histogram.ts'
import type { Requests } from '../requests.ts'
import { readCounts as script } from '../scripts.generated.ts'
import type { LimitScope } from '../settings.ts'

/** Statistics of the queue's hash, by their names there. */
const statistics = {
  submitted: 'submitted',
  /** Jobs handed to workers, those that were not started included. */
  claimed: 'claimed',
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
  /** Times a parked tenant came back in line. */
  unparked: 'unparked',
  /** Delayed jobs that fell due and went back in line. */
  promoted: 'promoted',
  deadLettersExpired: 'dead_expired',
  deadLettersRetried: 'revived',
  deadLettersDiscarded: 'discarded',
  /** Ticks of schedules that got a job. */
  ticks: 'ticks',
  /** Ticks of schedules that got none. */
  ticksMissed: 'ticks_missed',
  /** Rounds of the repeating audit. */
  audits: 'audits',
  /** Things that an audit has put right. */
  differences: 'differences',
} as const

/** Kept by the transitions themselves, so that reading them costs the same at any size. */
export type QueueCounts = Readonly<Record<'waiting' | 'delayed' | 'running' | keyof typeof statistics, number>>

/** What a limit has granted, or denied for one reason, since the queue was made. */
export interface LimitCount {
  readonly scope: LimitScope
  /** Of a tenant's limits all that have one name are counted together, and names that only tenants' own have as `other`. */
  readonly limit: string
  /** Of a denial: `rate`, `concurrency` or `restart`; undefined: it was granted. */
  readonly reason: string | undefined
  readonly count: number
}

/** What a queue has counted since it was made. */
export interface AllCounts {
  readonly counts: QueueCounts
  readonly ofLimits: readonly LimitCount[]
  /** How long jobs had to wait that an upstream pushed back without saying for how long, in seconds. */
  readonly backoffs: Histogram
  /** What audits have put right, by kind. */
  readonly repaired: ReadonlyMap<string, number>
}

/** In seconds, as congestion.lua counts them. */
const backoffBounds = [1, 2, 3, 5, 10, 20, 30, 60, 119, 300, 900, 3_600]

export async function readCounts(requests: Requests, nowUs = ''): Promise<QueueCounts> {
  return (await readAllCounts(requests, nowUs)).counts
}

export async function readAllCounts(requests: Requests, nowUs = ''): Promise<AllCounts> {
  const reply = await requests.run(script, () => ({ nowGiven: nowUs }))
  const [, waiting, delayed, running, flat] = reply as ['counts', number, number, number, string[]]
  const fields = new Map<string, string>()
  for (let at = 0; at < flat.length; at += 2) fields.set(flat[at] as string, flat[at + 1] as string)
  const counts: Record<string, number> = { waiting, delayed, running }
  for (const [name, field] of Object.entries(statistics)) counts[name] = Number(fields.get(field) ?? 0)
  const ofLimits = [...fields].flatMap(([field, count]) => limitCount(field, Number(count)) ?? [])
  return { counts: counts as QueueCounts, ofLimits, backoffs: backoffsOf(fields), repaired: repairedOf(fields) }
}

const REPAIRED = 'difference:'

function repairedOf(fields: ReadonlyMap<string, string>): Map<string, number> {
  const ofKinds = [...fields].filter(([field]) => field.startsWith(REPAIRED))
  return new Map(ofKinds.map(([field, count]) => [field.slice(REPAIRED.length), Number(count)]))
}

/** `backoff:<bound>`, `backoff:more` for what is longer than all, and `backoff_ms` for all together. */
function backoffsOf(fields: ReadonlyMap<string, string>): Histogram {
  const number = (field: string) => Number(fields.get(field) ?? 0)
  const counts = [...backoffBounds, 'more'].map((bound) => number(`backoff:${bound}`))
  return new Histogram(backoffBounds, { counts, sum: number('backoff_ms') / 1000 })
}

/** `granted:<scope>/<limit>` or `denied:<scope>/<limit>/<reason>`. */
function limitCount(field: string, count: number): LimitCount | undefined {
  const match = /^(?:granted|denied):(\w+)\/([\w-]+)(?:\/(\w+))?$/.exec(field)
  if (!match) return undefined
  return { scope: match[1] as LimitScope, limit: match[2] ?? '', reason: match[3], count }
}
