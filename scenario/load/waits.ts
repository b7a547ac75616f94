import type { Arrival } from '../../test/support/upstream.ts'
import { idealStarts, type ScheduledJob } from './ideal-schedule.ts'

/** How long jobs waited from being handed to `submit` to their call, and how long the ideal would have let them. */
export interface Waits {
  readonly actualMs: readonly number[]
  readonly idealMs: readonly number[]
  /** What there was to share. */
  readonly startsPerSecond: number
}

/**
 * The waits of the jobs that `isWatched`, by name. Every call that arrived at the upstream is an opportunity, which the
 * ideal scheduler may give to another job: so both have the same throughput at the same instants.
 */
export function waitsOf(
  submitted: ReadonlyMap<string, ScheduledJob>,
  arrivals: readonly Arrival[],
  isWatched: (job: ScheduledJob) => boolean,
): Waits {
  const names = [...submitted.keys()]
  const jobs = [...submitted.values()]
  const calledAt = new Map(arrivals.map(({ job, at }) => [job, at]))
  const slots = arrivals.map(({ at }) => at)
  const ideal = idealStarts(jobs, slots)
  const actualMs: number[] = []
  const idealMs: number[] = []
  jobs.forEach((job, index) => {
    if (!isWatched(job)) return
    const name = names[index] as string
    const called = calledAt.get(name)
    const due = ideal[index]
    if (called === undefined) throw new Error(`${name} was never called`)
    if (due === undefined) throw new Error(`the run was over before the ideal had its turn for ${name}`)
    actualMs.push(called - job.at)
    idealMs.push(due - job.at)
  })
  const spanMs = (slots.at(-1) ?? 0) - (slots[0] ?? 0)
  return { actualMs, idealMs, startsPerSecond: (slots.length / spanMs) * 1_000 }
}
