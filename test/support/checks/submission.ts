import type { Violation } from '../checker.ts'
import { isAcknowledged, type JobLife, type Lives } from './lives.ts'

const ENDED = new Set(['succeeded', 'failed', 'canceled'])

/** C1: what was acknowledged ends, and what may have been stored and was begun ends too. */
export function noLoss({ jobs }: Lives): Violation[] {
  return [...jobs.values()].flatMap((life) => {
    const isBegun = life.deliveries.length > 0
    if (life.submissions.length === 0 || !(isAcknowledged(life) || isBegun)) {
      return life.finals.filter(({ state }) => state !== 'unknown' && !ENDED.has(state)).length > 0
        ? [lost(life, 'was stored and did not end')]
        : []
    }
    if (life.finals.length === 0) return [lost(life, 'has no final state')]
    if (!life.finals.every(({ state }) => ENDED.has(state)))
      return [lost(life, `is ${life.finals[0]?.state} at the end`)]
    const isDone = life.finals.some(({ state }) => state === 'succeeded')
    if (isDone && !life.deliveries.some(({ end }) => end?.result === 'succeeded')) {
      return [lost(life, 'counts as succeeded and was never run to its end')]
    }
    return []
  })
}

/** C2: nothing runs that nobody submitted, that was refused, or before it was submitted. */
export function noPhantom({ jobs }: Lives): Violation[] {
  return [...jobs.values()].flatMap((life) => {
    const traces = life.events.filter(
      (event) => event.kind !== 'submit' && !(event.kind === 'final' && event.state === 'unknown'),
    )
    const first = traces[0]
    if (first === undefined) return []
    const invoked = life.submissions[0]?.invoke
    const phantom = (message: string): Violation[] => [{ check: 'C2', job: life.job, message, events: [first] }]
    if (invoked === undefined) return phantom('was never submitted')
    if (life.submissions.every(({ answer }) => answer?.phase === 'fail')) return phantom('was refused when submitted')
    if (first.at < invoked.at) return phantom('was there before it was submitted')
    return []
  })
}

/** The queue's own counts say the same as the jobs, and nothing is left over. */
export function countsAgree({ jobs, counts }: Lives): Violation[] {
  if (counts === undefined) return []
  const finals = [...jobs.values()].flatMap(({ finals }) => finals.slice(0, 1))
  const expected: Record<string, number> = { waiting: 0, delayed: 0, running: 0, succeeded: 0, failed: 0, canceled: 0 }
  for (const { state } of finals) if (state in expected) expected[state] = (expected[state] as number) + 1
  return Object.entries(expected)
    .filter(([state, count]) => state in counts.counts && counts.counts[state] !== count)
    .map(([state, count]) => ({
      check: 'C13',
      message: `the queue counts ${counts.counts[state]} jobs as ${state}; there are ${count}`,
      events: [counts],
    }))
}

function lost(life: JobLife, message: string): Violation {
  return { check: 'C1', job: life.job, message, events: life.events }
}
