import { setImmediate as turn } from 'node:timers/promises'
import type { ClockDweller, TestClock } from '../clock.ts'

export interface ManualClockOptions {
  /**
   * When it starts, in ms since 1970 or as a date. Always the same unless given, so that a test that passes today does not fail
   * at the end of an hour or a month.
   * @default 2026-01-01T00:00:00Z
   */
  start?: number | Date
}

/**
 * Time that moves only when a test says so, for the workers of this process and for what Redis is asked: delays, retries,
 * leases, time-outs, limits and schedules are tested without waiting for them. Give it to `new Sluice({ clock })`.
 *
 * It knows of whatever Sluice does, and of code that only waits for promises. Code that waits for the network or the disk
 * is not waited for: await what it is to bring before you move on.
 */
export interface ManualClock extends TestClock {
  /** Resolves when all that was begun has come to rest: jobs that can start have started, and ends are stored. */
  settle(): Promise<void>
  /**
   * Moves on by so many ms, from one instant at which something is due to the next, and lets everything come to rest at each
   * of them and at the end.
   */
  advance(ms: number): Promise<void>
  /** The same, to an instant in ms since 1970 or a date; one that has passed changes nothing. */
  advanceTo(instant: number | Date): Promise<void>
  /**
   * Moves on from instant to instant until the promise has settled, and answers what it does. Rejects when it has not
   * after `maxMs` of the clock.
   */
  runUntil<T>(promise: Promise<T>, options?: { maxMs?: number }): Promise<T>
  /** Resolves when the clock has moved on by so many ms: for a handler of a test that takes its time. */
  sleep(ms: number): Promise<void>
}

const DEFAULT_START = Date.UTC(2026, 0, 1)
// An hour of a job that hangs is some hundred renewals of its lease: a second or so.
const DEFAULT_MAX_MS = 3_600_000
// Without anything that says when it is at rest: promises that wait for each other.
const TURNS = 4

export function manualClock(options: ManualClockOptions = {}): ManualClock {
  const start = Math.round(Number(options.start ?? DEFAULT_START))
  if (!Number.isFinite(start)) throw new TypeError('start must be a date, or ms since 1970')
  return new MovedClock(start)
}

interface Timer {
  /** In µs of the clock. */
  readonly at: number
  readonly fn: () => void
}

class MovedClock implements ManualClock {
  readonly #start: number
  readonly #timers = new Set<Timer>()
  readonly #dwellers = new Set<ClockDweller>()
  /** In whole µs, as Redis counts: with fractions a timer could ring a hair before the instant that it was set for. */
  #nowUs = 0
  /** One move at a time; others wait for it. */
  #moving: Promise<unknown> = Promise.resolve()

  constructor(start: number) {
    this.#start = start
  }

  now(): number {
    return this.#nowUs / 1_000
  }

  date(): number {
    return this.#start + this.now()
  }

  setTimer(fn: () => void, ms: number): () => void {
    const timer = { at: this.#nowUs + Math.round(Math.max(0, ms) * 1_000), fn }
    this.#timers.add(timer)
    return () => this.#timers.delete(timer)
  }

  join(dweller: ClockDweller): () => void {
    this.#dwellers.add(dweller)
    return () => this.#dwellers.delete(dweller)
  }

  async settle(): Promise<void> {
    for (let isMoved = true; isMoved; ) {
      for (let turns = 0; turns < TURNS; turns++) await turn()
      const settled = await Promise.all([...this.#dwellers].map((dweller) => dweller.settle()))
      isMoved = this.#callDue() || settled.includes(true)
    }
  }

  advance(ms: number): Promise<void> {
    if (!(ms >= 0 && Number.isFinite(ms))) throw new RangeError(`Time moves on by 0 ms or more, not by ${ms}`)
    return this.#inTurn(() => this.#moveTo(this.#nowUs + Math.round(ms * 1_000)))
  }

  advanceTo(instant: number | Date): Promise<void> {
    const ms = Number(instant)
    if (!Number.isFinite(ms)) throw new RangeError(`Time moves to a date, or to ms since 1970, not to ${instant}`)
    return this.#inTurn(() => this.#moveTo(Math.round((ms - this.#start) * 1_000)))
  }

  async runUntil<T>(promise: Promise<T>, { maxMs = DEFAULT_MAX_MS }: { maxMs?: number } = {}): Promise<T> {
    let hasSettled = false
    const watch = promise.then(
      () => {
        hasSettled = true
      },
      () => {
        hasSettled = true
      },
    )
    const end = this.#nowUs + maxMs * 1_000
    while (!hasSettled) {
      await this.#inTurn(() => this.settle())
      if (hasSettled) break
      const next = this.#next()
      // Nothing that time would bring: it waits for something else.
      if (next === undefined) await watch
      else if (next.at > end) throw new Error(`What was waited for did not happen within ${maxMs} ms of the clock.`)
      else await this.#inTurn(() => this.#moveTo(next.at))
    }
    return promise
  }

  sleep(ms: number): Promise<void> {
    return new Promise((resolve) => this.setTimer(resolve, ms))
  }

  #inTurn<T>(move: () => Promise<T>): Promise<T> {
    const moved = this.#moving.then(move)
    this.#moving = moved.catch(() => {})
    return moved
  }

  async #moveTo(targetUs: number): Promise<void> {
    await this.settle()
    while (this.#nowUs < targetUs) {
      this.#nowUs = Math.min(targetUs, this.#next()?.at ?? targetUs)
      await this.settle()
    }
  }

  /** The earliest; of several at one instant the one that was set first. */
  #next(): Timer | undefined {
    let first: Timer | undefined
    for (const timer of this.#timers) if (first === undefined || timer.at < first.at) first = timer
    return first
  }

  /** Calls the first timer that is due; what it begins comes to rest before the next one. False: none is. */
  #callDue(): boolean {
    const timer = this.#next()
    if (timer === undefined || timer.at > this.#nowUs) return false
    this.#timers.delete(timer)
    timer.fn()
    return true
  }
}
