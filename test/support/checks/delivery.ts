import type { CheckerOptions, Violation } from '../checker.ts'
import {
  type Delivery,
  type Fault,
  faultsBetween,
  isTerminal,
  type JobLife,
  type Lives,
  type Outcome,
} from './lives.ts'

/** C3: a job runs again only because it came back, or because a fault cost its holder the lease and the lease ran out. */
export function justifiedRedelivery(lives: Lives, options: CheckerOptions): Violation[] {
  return eachPair(lives, (life, earlier, later) => {
    if (cameBack(earlier, later, options)) return []
    const violation = (message: string): Violation[] => [
      { check: 'C3', job: life.job, message, events: eventsOf(earlier, later) },
    ]
    const faults = faultsOf(lives, earlier, later, options)
    if (faults.length === 0) return violation('ran again although nothing had happened to its holder')
    if (faults.some((fault) => mayForget(fault, earlier, options))) return []
    const alive = lastSignOfLife(earlier, faults)
    const heldMs = later.start.at - alive
    if (heldMs < options.leaseMs - options.toleranceMs) {
      return violation(
        `ran again ${heldMs.toFixed(1)} ms after its holder was last alive; its lease lasts ${options.leaseMs}`,
      )
    }
    return []
  })
}

/** C4: no two leases of a job are valid at one time, and only the latest can say how the job ended. */
export function leaseExclusion(lives: Lives, options: CheckerOptions): Violation[] {
  return eachPair(lives, (life, earlier, later) => {
    const violation = (message: string): Violation[] => [
      { check: 'C4', job: life.job, message, events: eventsOf(earlier, later) },
    ]
    const until = earlier.renews.at(-1)?.until ?? earlier.claim?.until
    const from = later.claim?.from
    if (until !== undefined && from !== undefined && from < until && !cameBack(earlier, later, options)) {
      return violation(`was leased again at ${from}, held until ${until}`)
    }
    const accepted = earlier.outcomes.find(({ answer }) => answer === 'accepted')
    if (accepted !== undefined && isTerminal(accepted.result) && later.start.at < accepted.at) {
      return violation('was ended under a fence that another had replaced')
    }
    const endedAt = earlier.end?.at ?? Number.POSITIVE_INFINITY
    if (accepted !== undefined && !isTerminal(accepted.result) && later.start.at < endedAt - options.toleranceMs) {
      return violation('was given back under a fence that another had replaced')
    }
    if (later.start.at < endedAt && faultsOf(lives, earlier, later, options).length === 0) {
      return violation('ran twice at the same time')
    }
    return []
  })
}

/** C5: each delivery of a job has a fence of its own, higher than those before, and what is accepted never goes back. */
export function risingFences(lives: Lives, options: CheckerOptions): Violation[] {
  const deliveries = eachPair(lives, (life, earlier, later) => {
    const violation = (message: string): Violation[] => [
      { check: 'C5', job: life.job, message, events: eventsOf(earlier, later) },
    ]
    if (earlier.fence === later.fence) return violation(`started twice under the fence ${earlier.fence}`)
    const isInverted = earlier.start.at > later.start.at
    if (isInverted && faultsOf(lives, earlier, later, options).length === 0) {
      return violation(`started under ${earlier.fence} after it had started under ${later.fence}`)
    }
    return []
  })
  const accepted = [...lives.jobs.values()].flatMap((life) => {
    let highest: Outcome | undefined
    return life.outcomes.flatMap((outcome): Violation[] => {
      if (outcome.answer !== 'accepted') return []
      const before = highest
      if (before === undefined || BigInt(outcome.fence) > BigInt(before.fence)) highest = outcome
      if (before === undefined || BigInt(outcome.fence) >= BigInt(before.fence)) return []
      return [{ check: 'C5', job: life.job, message: 'an older fence was accepted', events: [before, outcome] }]
    })
  })
  const strangers = [...lives.jobs.values()].flatMap((life) =>
    [...life.outcomes, ...life.effects]
      .filter((event) => !life.deliveries.some(({ start }) => start.fence === event.fence))
      .map((event) => ({
        check: 'C5' as const,
        job: life.job,
        message: `acted under the fence ${event.fence}, which was not given`,
        events: [event],
      })),
  )
  return [...deliveries, ...accepted, ...strangers]
}

/** C6: a job ends once, in one state, and stays there. */
export function oneTerminalState({ jobs }: Lives): Violation[] {
  return [...jobs.values()].flatMap((life) => {
    const violation = (message: string): Violation => ({ check: 'C6', job: life.job, message, events: life.events })
    const found: Violation[] = []
    const ends = life.outcomes.filter(({ answer, result }) => answer === 'accepted' && isTerminal(result))
    const end = ends[0]
    const states = new Set(life.finals.map(({ state }) => state))
    if (ends.length > 1) found.push(violation(`ended ${ends.length} times`))
    if (states.size > 1) found.push(violation(`is ${[...states].join(' and ')} at once`))
    // A zombie that wakes up with an older fence may still start; what it does no longer counts.
    if (end !== undefined && life.deliveries.some(({ fence }) => fence > BigInt(end.fence))) {
      found.push(violation('ran after it had ended'))
    }
    if (end !== undefined && states.size > 0 && !states.has(end.result === 'succeeded' ? 'succeeded' : 'failed')) {
      found.push(violation(`was accepted as ${end.result} and is ${[...states].join()}`))
    }
    if (states.has('failed') && life.deliveries.at(-1)?.end?.result === 'succeeded' && ends.length === 0) {
      found.push(violation('succeeded in its last run and counts as failed'))
    }
    return found
  })
}

function eachPair(
  lives: Lives,
  check: (life: JobLife, earlier: Delivery, later: Delivery) => Violation[],
): Violation[] {
  return [...lives.jobs.values()].flatMap((life) =>
    life.deliveries.slice(1).flatMap((later, i) => check(life, life.deliveries[i] as Delivery, later)),
  )
}

/** Whether the holder gave the job back before it ran again. */
function cameBack(earlier: Delivery, later: Delivery, { toleranceMs }: CheckerOptions): boolean {
  const { end } = earlier
  if (end === undefined || isTerminal(end.result)) return false
  return end.at <= later.start.at + toleranceMs
}

/** The faults that can have kept the earlier holder from renewing, or from starting in time. */
function faultsOf(lives: Lives, earlier: Delivery, later: Delivery, options: CheckerOptions): Fault[] {
  const from = Math.min(earlier.start.at, later.start.at)
  const to = Math.max(earlier.start.at, later.start.at)
  return faultsBetween(lives, earlier.start.process, { from, to, aftermathMs: options.leaseMs + options.toleranceMs })
}

/**
 * A holder that was hit before its handler could start had the lease since before the fault: its start says nothing
 * about when the lease began.
 */
function lastSignOfLife(delivery: Delivery, faults: readonly Fault[]): number {
  const signs = [delivery.claim?.at, delivery.start.at, ...delivery.renews.map(({ at }) => at)]
  const last = Math.max(...signs.filter((at) => at !== undefined))
  return Math.min(last, ...faults.filter(({ from }) => from <= delivery.start.at).map(({ from }) => from))
}

/** A replica that took over may never have heard of what was claimed just before: it gives it out again at once. */
function mayForget({ fault, from }: Fault, { start }: Delivery, { forgetsMs }: CheckerOptions): boolean {
  return fault === 'failover' && forgetsMs !== undefined && start.at >= from - forgetsMs
}

function eventsOf(...deliveries: Delivery[]): Violation['events'] {
  return deliveries.flatMap(({ claim, start, renews, end, outcomes }) =>
    [claim, start, ...renews, end, ...outcomes].filter((event) => event !== undefined),
  )
}
