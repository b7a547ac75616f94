import type { Span } from './arrivals.ts'
import { justifiedRedelivery, leaseExclusion, oneTerminalState, risingFences } from './checks/delivery.ts'
import { concurrency, rate } from './checks/limits.ts'
import { readLives } from './checks/lives.ts'
import { countsAgree, noLoss, noPhantom } from './checks/submission.ts'
import { laneOrder, liveness, neverEarly } from './checks/timing.ts'
import { type HistoryEvent, inOrder } from './history.ts'

export interface CheckerOptions {
  leaseMs: number
  /**
   * How much later than its claim a handler may have started, and a step may have been written down: what a busy
   * machine adds to times that are compared with leases.
   */
  toleranceMs: number
  /** What Redis's clock and the machine's monotonic one may differ by over a test, for "never early". */
  clockToleranceMs: number
  /** Within which time everything ends after the last fault. @default not checked */
  livenessMs?: number
  /** How much of what came before a `failover` the next master may not have heard of. @default nothing */
  forgetsMs?: number
  limits?: readonly { permits: number; windowMs: number; tenant?: string }[]
  /** Times in which nothing may arrive at the upstream, on the clock of the history. */
  closed?: readonly Span[]
  concurrency?: readonly { max: number; tenant?: string }[]
}

export type Check = 'C1' | 'C2' | 'C3' | 'C4' | 'C5' | 'C6' | 'C7' | 'C8' | 'C11' | 'C12' | 'C13' | 'C14'

export interface Violation {
  check: Check
  job?: string
  message: string
  /** The part of the history that shows it. */
  events: readonly HistoryEvent[]
}

const CHECKS = [
  noLoss,
  noPhantom,
  justifiedRedelivery,
  leaseExclusion,
  risingFences,
  oneTerminalState,
  rate,
  concurrency,
  neverEarly,
  laneOrder,
  countsAgree,
  liveness,
] as const

/** Reads a whole history after the fact and names everything in it that breaks a promise. */
export function checkHistory(events: readonly HistoryEvent[], options: CheckerOptions): Violation[] {
  const lives = readLives(inOrder(events))
  return CHECKS.flatMap((check) => check(lives, options))
}

/** Violations in a form to read in a test's output: the first few, with the events that show them. */
export function describeViolations(violations: readonly Violation[], shown = 5): string {
  const texts = violations.slice(0, shown).map(({ check, job, message, events }) => {
    const lines = events.slice(0, 20).map((event) => `    ${event.at.toFixed(3)} ${JSON.stringify(event)}`)
    return `${check}${job === undefined ? '' : ` ${job}`}: ${message}\n${lines.join('\n')}`
  })
  return [`${violations.length} violations`, ...texts].join('\n')
}
