/** How an upstream takes a call that arrives at an instant of the machine's monotonic clock. */
export interface Account {
  call(at: number): AccountAnswer
}

export interface AccountAnswer {
  readonly status: 200 | 403 | 429
  readonly headers: Readonly<Record<string, string>>
  /** Of a quota. */
  readonly quota?: QuotaCall
}

/** How a quota stands after a call. */
export interface QuotaCall {
  readonly left: number
  /** How often it has started over. */
  readonly window: number
  /** Since it last did so, or since the start. */
  readonly sinceResetMs: number
}

/** Takes so many calls in any sliding second. A call too many is refused, and counts: knocking is not free. */
export class RateAccount implements Account {
  perSecond: number
  #recent: number[] = []

  constructor(perSecond: number) {
    this.perSecond = perSecond
  }

  call(at: number): AccountAnswer {
    this.#recent = this.#recent.filter((earlier) => at - earlier < 1_000)
    this.#recent.push(at)
    if (this.#recent.length <= this.perSecond) return { status: 200, headers: {} }
    return { status: 429, headers: { 'retry-after': '1' } }
  }
}

/** Counts down, and starts over at instants that it names; never asked to, it would go below nothing. */
export class QuotaAccount implements Account {
  readonly #settings: { readonly left: number; readonly limit: number; readonly resetEveryMs: number }
  readonly #wall: () => number
  #left: number
  #window = 0
  #resetAt: number
  #lastResetAt: number

  /** @param wall - Milliseconds since 1970. */
  constructor(
    settings: { left: number; limit: number; firstResetInMs: number; resetEveryMs: number },
    wall: () => number = Date.now,
  ) {
    this.#settings = settings
    this.#wall = wall
    this.#left = settings.left
    this.#lastResetAt = wall()
    // Upstreams name resets in whole seconds.
    this.#resetAt = Math.ceil((wall() + settings.firstResetInMs) / 1_000) * 1_000
  }

  call(): AccountAnswer {
    const now = this.#wall()
    while (now >= this.#resetAt) {
      this.#lastResetAt = this.#resetAt
      this.#window += 1
      this.#resetAt += this.#settings.resetEveryMs
      this.#left = this.#settings.left
    }
    this.#left -= 1
    const headers = {
      'x-ratelimit-limit': String(this.#settings.limit),
      'x-ratelimit-remaining': String(Math.max(0, this.#left)),
      'x-ratelimit-reset': String(this.#resetAt / 1_000),
    }
    const quota = { left: this.#left, window: this.#window, sinceResetMs: now - this.#lastResetAt }
    return { status: this.#left < 0 ? 403 : 200, headers, quota }
  }
}
