import type { Requests } from '../requests.ts'
import { readCounts as script } from '../scripts.generated.ts'

/** Statistics of the queue's hash, by their names there. */
const statistics = {
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

/** Kept by the transitions themselves, so that reading them costs the same at any size. */
export type QueueCounts = Readonly<Record<'waiting' | 'delayed' | 'running' | keyof typeof statistics, number>>

export async function readCounts(requests: Requests, nowUs = ''): Promise<QueueCounts> {
  const reply = await requests.run('read-counts', script, () => ({ nowGiven: nowUs }))
  const [, waiting, delayed, running, flat] = reply as ['counts', number, number, number, string[]]
  const fields = new Map<string, string>()
  for (let at = 0; at < flat.length; at += 2) fields.set(flat[at] as string, flat[at + 1] as string)
  const counts: Record<string, number> = { waiting, delayed, running }
  for (const [name, field] of Object.entries(statistics)) counts[name] = Number(fields.get(field) ?? 0)
  return counts as QueueCounts
}
