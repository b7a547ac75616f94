import type { CheckerOptions, Violation } from '../checker.ts'
import { type Delivery, isAcknowledged, isTerminal, type JobLife, type Lives, type Submission } from './lives.ts'

/** C11: nothing starts before it is due. */
export function neverEarly({ jobs }: Lives, { clockToleranceMs }: CheckerOptions): Violation[] {
  return [...jobs.values()].flatMap((life): Violation[] => {
    const submission = life.submissions[0]
    if (submission === undefined) return []
    const { invoke, spec } = submission
    const due = invoke.at + (spec.delayMs ?? 0) - clockToleranceMs
    const early = life.deliveries.find(({ start }) => start.at < due)
    if (early === undefined) return []
    const message = `started ${(due - early.start.at).toFixed(1)} ms early`
    return [{ check: 'C11', job: life.job, message, events: [invoke, early.start] }]
  })
}

/**
 * C12: jobs of a lane are first claimed in the order they were submitted (as far as no fault took a claim away before
 * it could start), those of one claim start in it whatever happens, and a job of an ordered lane waits for the end of the one before.
 */
export function laneOrder({ jobs, faults }: Lives, options: CheckerOptions): Violation[] {
  const lanes = new Map<string, { life: JobLife; submission: Submission }[]>()
  for (const life of jobs.values()) {
    const submission = life.submissions[0]
    if (submission?.spec.lane === undefined || life.deliveries.length === 0) continue
    const lane = `${submission.spec.tenant} ${submission.spec.lane}`
    lanes.set(lane, [...(lanes.get(lane) ?? []), { life, submission }])
  }
  return [...lanes.values()].flatMap((lane) => {
    lane.sort((a, b) => a.submission.place - b.submission.place)
    return lane.slice(1).flatMap(({ life, submission }, i): Violation[] => {
      const before = (lane[i] as (typeof lane)[number]).life
      const first = byTime(life.deliveries)[0] as Delivery
      const violation = (message: string): Violation[] => [
        { check: 'C12', job: life.job, message, events: [...before.events, first.start] },
      ]
      if (submission.spec.ordered) {
        const end = before.deliveries.at(-1)?.end
        if (end !== undefined && first.start.at < end.at - options.clockToleranceMs) {
          return violation(`started before ${before.job}, which stands before it in an ordered lane, had ended`)
        }
      } else if (!submission.spec.delayMs && !before.submissions[0]?.spec.delayMs) {
        const earlier = byTime(before.deliveries)[0] as Delivery
        if (first.fence === earlier.fence && first.start.at < earlier.start.at)
          return violation(`started before ${before.job}, which stands before it and was claimed with it`)
        if (faults.length === 0 && first.fence < (before.deliveries[0] as Delivery).fence)
          return violation(`was claimed before ${before.job}`)
      }
      return []
    })
  })
}

/** C14: once the last fault is over, everything comes to its end within a bounded time. */
export function liveness({ jobs, faults }: Lives, { livenessMs }: CheckerOptions): Violation[] {
  if (livenessMs === undefined) return []
  const healed = Math.max(0, ...faults.map(({ from, to }) => (to === Number.POSITIVE_INFINITY ? from : to)))
  return [...jobs.values()].flatMap((life): Violation[] => {
    const stored = life.submissions.find(({ answer }) => answer?.phase === 'ok')
    if (!isAcknowledged(life) || stored?.answer === undefined) return []
    if (life.finals.some(({ state }) => state === 'canceled')) return []
    const deadline = Math.max(healed, stored.answer.at + (stored.spec.delayMs ?? 0)) + livenessMs
    if (endedAt(life) <= deadline) return []
    return [
      {
        check: 'C14',
        job: life.job,
        message: `had not ended ${livenessMs} ms after the last fault`,
        events: life.events,
      },
    ]
  })
}

/** When it first was done; for a dead letter, when it was last tried (never, for one that only ever killed its workers). */
function endedAt({ deliveries, finals }: JobLife): number {
  const ends = deliveries.flatMap(({ end }) => (end === undefined ? [] : [end]))
  const done = ends.filter(({ result }) => isTerminal(result)).map(({ at }) => at)
  if (done.length > 0) return Math.min(...done)
  if (finals.some(({ state }) => state === 'failed')) return Math.max(0, ...ends.map(({ at }) => at))
  return Number.POSITIVE_INFINITY
}

function byTime(deliveries: readonly Delivery[]): Delivery[] {
  return [...deliveries].sort((a, b) => a.start.at - b.start.at)
}
