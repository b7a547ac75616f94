import type { Restarts } from './bucket.ts'

/** What counts a limit, as one script sees it. */
export interface Meter {
  /** Of those that depend on the way to the upstream. */
  readonly jitter: number | undefined
  /** How long ago what this script granted counts as asked for; not of all. */
  late?(): number
  /** Nothing is granted before, because the store was restarted or the upstream pushed back. */
  closedUntil: number
  available(): number
  /** When so many permits could be granted at once. */
  instant(permits: number): number
  /** Answers the member of a pool that granted it. */
  charge(permits: number, fence: number): string | undefined
  /** A further call of a job that runs. */
  chargeAgain(permits: number, fence: number, member: string | undefined): void
  /** When a further call of a job that runs can be granted. */
  furtherInstant(permits: number, member: string | undefined): number
  refund(permits: number, fence: number, member: string | undefined): void
  /** How many are worth waiting for. */
  batch(): number
  /** What is used, and when nothing is. */
  usage(): { used: number; unusedAt: number }
  /** What lasts of it; undefined where nothing does. */
  text(): string | undefined
}

export interface MeterContext {
  readonly jitter: number
  readonly restarts: Restarts
  /** Some job of the queue has cost more than one permit. */
  readonly hasCosts: boolean
  readonly now: number
  /** What an upstream that pushed back has left of the rate. */
  readonly share: number
}
