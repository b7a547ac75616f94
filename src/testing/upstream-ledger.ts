import { integer, number, positive } from '../assert.ts'

/**
 * Of every upstream, whether it is a server or in memory. One with no limit, or half a call of it, would take everything, and
 * a test of a limit would pass without testing it.
 */
export const ledgerRules = {
  limit: integer({ min: 1 }),
  windowMs: positive({ default: 1_000 }),
  latencyMs: number({ min: 0, default: 0 }),
}

/** What an upstream allows: at most `limit` calls in any sliding window of `windowMs`. */
export interface UpstreamLimit {
  readonly limit: number
  readonly windowMs: number
}

/** A call as the upstream saw it; times in milliseconds of the machine's monotonic clock. */
export interface UpstreamCall {
  readonly path: string
  readonly at: number
  /** When it was answered; undefined while it is not. */
  answeredAt: number | undefined
  readonly status: 200 | 429
}

/**
 * Every call that arrived, each held against every sliding window it lies in. A call that is one too many is a
 * violation, and still counts: an upstream that forgot the calls it refused would forgive those who keep knocking.
 */
export class UpstreamLedger {
  readonly calls: UpstreamCall[] = []
  readonly #allowed: UpstreamLimit
  #violations = 0

  constructor(allowed: UpstreamLimit) {
    this.#allowed = allowed
  }

  get violations(): number {
    return this.#violations
  }

  /** Notes a call. Of the windows it lies in, the one that ends with it is the fullest seen so far. */
  note(path: string, at: number): UpstreamCall {
    const { limit, windowMs } = this.#allowed
    // With this one, limit + 1 calls lie between that one and now.
    const oldest = this.calls[this.calls.length - limit]
    const isOneTooMany = oldest !== undefined && at - oldest.at < windowMs
    if (isOneTooMany) this.#violations += 1
    const call: UpstreamCall = { path, at, answeredAt: undefined, status: isOneTooMany ? 429 : 200 }
    this.calls.push(call)
    return call
  }

  /** The most calls in any sliding window. */
  busiest(): number {
    let start = 0
    let most = 0
    this.calls.forEach(({ at }, end) => {
      while (at - (this.calls[start] as UpstreamCall).at >= this.#allowed.windowMs) start += 1
      most = Math.max(most, end - start + 1)
    })
    return most
  }
}
