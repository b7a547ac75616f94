import { HttpUpstream } from './http-upstream.ts'

/** What one token may call in one of the upstream's windows. */
interface Account {
  window: number
  used: number
}

/**
 * An HTTP API that counts calls of each token in windows of the clock, and says in `X-RateLimit-*` what is left and when
 * it starts over. A call that is one too many is refused with 429; so is none that a quota has granted.
 */
export class BudgetUpstream {
  readonly http: HttpUpstream
  /** Calls that were answered, by token; '' for those without one. */
  readonly calls = new Map<string, number>()
  /** The least that was ever left of a token's budget, by token. */
  readonly leastLeft = new Map<string, number>()
  refused = 0
  readonly #limits: ReadonlyMap<string, number>
  readonly #windowMs: number
  readonly #accounts = new Map<string, Account>()

  private constructor(http: HttpUpstream, limits: Readonly<Record<string, number>>, windowMs: number) {
    this.http = http
    this.#limits = new Map(Object.entries(limits))
    this.#windowMs = windowMs
  }

  /**
   * @param limits - Calls a window, by token.
   * @param options.answering - Awaited before a call is answered, when it has been counted.
   */
  static async start(
    limits: Readonly<Record<string, number>>,
    { windowMs, answering }: { windowMs: number; answering?: () => Promise<void> },
  ): Promise<BudgetUpstream> {
    let upstream: BudgetUpstream
    const http = await HttpUpstream.start((request, response) => {
      const token = (request.headers.authorization ?? '').replace('Bearer ', '')
      const { status, headers } = upstream.#count(token)
      void (answering?.() ?? Promise.resolve()).then(() => response.writeHead(status, headers).end())
    })
    upstream = new BudgetUpstream(http, limits, windowMs)
    return upstream
  }

  get url(): string {
    return this.http.url('/')
  }

  get total(): number {
    return [...this.calls.values()].reduce((sum, calls) => sum + calls, 0)
  }

  stop(): Promise<void> {
    return this.http.stop()
  }

  #count(token: string): { status: number; headers: Record<string, string> } {
    const limit = this.#limits.get(token) ?? 0
    const window = Math.floor(Date.now() / this.#windowMs)
    const known = this.#accounts.get(token)
    const account = known?.window === window ? known : { window, used: 0 }
    this.#accounts.set(token, account)
    account.used += 1
    this.calls.set(token, (this.calls.get(token) ?? 0) + 1)
    const left = limit - account.used
    this.leastLeft.set(token, Math.min(left, this.leastLeft.get(token) ?? left))
    if (left < 0) this.refused += 1
    return {
      status: left < 0 ? 429 : 200,
      headers: {
        'x-ratelimit-limit': String(limit),
        'x-ratelimit-remaining': String(Math.max(0, left)),
        'x-ratelimit-reset': String(((window + 1) * this.#windowMs) / 1_000),
      },
    }
  }
}
