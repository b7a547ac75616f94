import type { DutyOutcome } from '../../../src/store/scripts/settle-duty.ts'
import type { Duty, DutyKind, DutyTaker, TakeDutyReply } from '../../../src/store/scripts/take-duty.ts'
import { dropDuty, transition } from './acting.ts'
import type { QueueState } from './queue-state.ts'

/** What the queue itself has to do besides jobs. */

/** Nobody else has said that it makes aggregates. */
export function takeDuty(queue: QueueState, taker: DutyTaker, now: number): TakeDutyReply {
  const due = [...queue.duties]
    .filter(([, instant]) => instant <= now)
    .sort(([a, dueA], [b, dueB]) => dueA - dueB || (a < b ? -1 : 1))
  const first = due.find(([duty]) => canDo(queue, taker, duty, now))
  if (!first) return { word: 'none', passed: due.length }
  const [id] = first
  const until = now + taker.leaseMs * 1000
  queue.duties.set(id, until)
  const [kind, tenant = '', name = ''] = id.split(':')
  const tries = queue.dutyTries.get(id) ?? 0
  return { word: 'taken', duty: { id, kind: kind as DutyKind, tenant, name, fence: String(until), tries } }
}

function canDo(queue: QueueState, { kinds, types, unknownTypeMs }: DutyTaker, duty: string, now: number): boolean {
  const [kind, tenant = '', name = ''] = duty.split(':')
  if (!kinds.includes(kind as DutyKind)) return false
  const action = kind === 'aggregate' ? queue.action(tenant, name) : undefined
  if (!action || types.includes(action.rules.type)) return true
  return now - (action.lastEndAt > 0 ? action.lastEndAt : action.createdAt) >= unknownTypeMs * 1000
}

export function settleDuty(
  queue: QueueState,
  { id, fence }: Pick<Duty, 'id' | 'fence'>,
  became: DutyOutcome,
  now: number,
): string | undefined {
  queue.begin(now)
  if (queue.duties.get(id) !== Number(fence)) return undefined
  if (became.outcome !== 'done') {
    const due = now + Math.round(became.afterMs * 1000)
    queue.duties.set(id, due)
    if (became.outcome === 'again') queue.dutyTries.set(id, (queue.dutyTries.get(id) ?? 0) + 1)
    return String(due)
  }
  dropDuty(queue, id)
  const [kind, tenant = '', name = ''] = id.split(':')
  const action = kind === 'aggregate' ? queue.action(tenant, name) : undefined
  if (action?.state === 'AGGREGATING') {
    if (became.error === undefined) action.aggregate = became.aggregate ?? ''
    else action.error = became.error
    transition(queue, action, became.error === undefined ? 'COMPLETED' : 'FAILED')
  }
  queue.end()
  return String(now)
}

/** The marks of the jobs may be forgotten like those of any cancelled job. */
export function freeTrash(queue: QueueState, name: string, most: number, now: number): number {
  const jobs = queue.trash.get(name) ?? []
  for (const job of jobs.splice(0, most)) job.at = now + queue.values.keep_ids
  if (jobs.length === 0) queue.trash.delete(name)
  return jobs.length
}
