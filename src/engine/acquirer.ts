import type { Clock } from '../clock.ts'
import type { Level } from '../store/names.ts'
import type { Acquire } from '../store/scripts/acquire-permits.ts'
import { isStoreSilent } from './is-store-away.ts'
import type { Log } from './log.ts'
import { type Caller, denied, type Permit, PermitLine } from './permit-line.ts'

export interface Asked {
  /** One name, or several. */
  readonly limits: string | readonly string[]
  readonly permits: number
  readonly level: Level
  readonly onUnavailable: 'deny' | 'allow'
}

const UNAVAILABLE_WAIT_MS = 2_000
const LOG_EVERY_MS = 10_000

/** Charges limits for callers that have no job. Without Redis it denies, or allows where the caller asked for that. */
export class Acquirer {
  /** Answers given without Redis since the process started. */
  readonly unavailable = { denied: 0, allowed: 0 }
  readonly #acquire: Acquire
  readonly #clock: Clock
  readonly #log: Log
  readonly #ofOne = linesByLevel()
  readonly #ofSeveral = linesByLevel()
  #loggedAt = Number.NEGATIVE_INFINITY

  constructor(parts: { acquire: Acquire; clock: Clock; log: Log }) {
    this.#acquire = parts.acquire
    this.#clock = parts.clock
    this.#log = parts.log
  }

  ask({ limits, permits, level, onUnavailable }: Asked): Promise<Permit> {
    const isOne = typeof limits === 'string'
    const lines = (isOne ? this.#ofOne : this.#ofSeveral)[level]
    const key = isOne ? limits : JSON.stringify(limits)
    let line = lines.get(key)
    if (!line) {
      line = this.#lineOf(isOne ? [limits] : [...limits], level)
      lines.set(key, line)
    }
    return line.ask(permits, onUnavailable)
  }

  #lineOf(limits: readonly string[], level: Level): PermitLine {
    const settleWithout = (caller: Caller, error: unknown) => this.#settleWithout(caller, limits, error)
    return new PermitLine({ limits, level, acquire: this.#acquire, clock: this.#clock, settleWithout })
  }

  #settleWithout(caller: Caller, limits: readonly string[], error: unknown): void {
    if (!isStoreSilent(error)) {
      caller.reject(error)
      return
    }
    if (caller.onUnavailable === 'deny') {
      this.unavailable.denied += 1
      caller.resolve(denied(UNAVAILABLE_WAIT_MS, null))
      return
    }
    this.unavailable.allowed += 1
    this.#warn(limits, error)
    caller.resolve({ ...denied(0, null), granted: true, permits: caller.permits })
  }

  #warn(limits: readonly string[], error: unknown): void {
    const now = this.#clock.now()
    if (now - this.#loggedAt < LOG_EVERY_MS) return
    this.#loggedAt = now
    const message = `Redis does not answer: permits of ${limits.join(', ')} are given uncounted, as onUnavailable asks for.`
    const { allowed } = this.unavailable
    this.#log({ level: 'warn', event: 'limits.allowed-uncounted', message, limits, allowed, error })
  }
}

/** Those who ask for the same, by the level and the names of the limits. */
function linesByLevel(): Record<Level, Map<string, PermitLine>> {
  return { high: new Map(), normal: new Map(), low: new Map() }
}
