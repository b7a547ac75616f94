import { callback, checkOptions, optional, type Settings } from '../assert.ts'
import { type Clock, systemClock } from '../clock.ts'
import type { UpstreamReport } from './upstream.ts'
import { ledgerRules, UpstreamLedger } from './upstream-ledger.ts'

export interface MemoryUpstreamOptions {
  /** Calls that it takes in any sliding window. */
  limit: number
  /** @default 1_000 */
  windowMs?: number
  /** How long it takes to answer what it takes; a refusal comes at once. @default 0 */
  latencyMs?: number
  /** Whose time it counts by; give it the manual clock of the test. @default the time of the machine */
  clock?: Clock
  /** What it answers to a call that it takes. @default 200 and `{"ok":true}` */
  answer?: (request: Request) => Response | Promise<Response>
}

const memoryRules = {
  ...ledgerRules,
  clock: optional((value: unknown) => value as Clock),
  answer: optional(callback<NonNullable<MemoryUpstreamOptions['answer']>>()),
}

/** A call as the upstream saw it. */
export interface MemoryCall {
  readonly method: string
  readonly url: string
  readonly headers: Headers
  readonly body: string
  /** When it arrived, by the clock; for a difference to others. */
  readonly at: number
  /** Undefined until it is answered. */
  readonly status: number | undefined
}

/**
 * A rate-limited API within the test: no network, no other process. Give its `fetch` to the code that makes the calls. One that
 * is too many is answered with 429 and `retry-after`; every answer says what is left (`x-ratelimit-…`).
 */
export interface MemoryUpstream {
  readonly fetch: (input: string | URL | Request, init?: RequestInit) => Promise<Response>
  /** In the order of arrival. */
  readonly calls: readonly MemoryCall[]
  report(): UpstreamReport
  /** Starts the books over. */
  forget(): void
}

export function memoryUpstream(options: MemoryUpstreamOptions): MemoryUpstream {
  return new LimitedUpstream(checkOptions('memoryUpstream', options, memoryRules))
}

type OpenCall = { -readonly [Field in keyof MemoryCall]: MemoryCall[Field] }

class LimitedUpstream implements MemoryUpstream {
  readonly #limit: number
  readonly #windowMs: number
  readonly #latencyMs: number
  readonly #clock: Clock
  readonly #answer: (request: Request) => Response | Promise<Response>
  #ledger: UpstreamLedger
  #calls: OpenCall[] = []

  constructor(options: Settings<typeof memoryRules>) {
    this.#limit = options.limit
    this.#windowMs = options.windowMs
    this.#latencyMs = options.latencyMs
    this.#clock = options.clock ?? systemClock
    this.#answer = options.answer ?? (() => Response.json({ ok: true }))
    this.#ledger = this.#newLedger()
  }

  get calls(): readonly MemoryCall[] {
    return this.#calls
  }

  readonly fetch = async (input: string | URL | Request, init?: RequestInit): Promise<Response> => {
    const request = new Request(input, init)
    request.signal.throwIfAborted()
    const { method, url, headers } = request
    const at = this.#clock.now()
    const { status } = this.#ledger.note(new URL(url).pathname, at)
    const call: OpenCall = { method, url, headers, body: '', at, status: undefined }
    this.#calls.push(call)
    call.body = await request.clone().text()
    const response = status === 429 ? this.#refusal(at) : await this.#taken(request)
    call.status = response.status
    for (const [name, value] of this.#budget(at)) response.headers.set(name, value)
    return response
  }

  report(): UpstreamReport {
    const { calls, violations } = this.#ledger
    const [limit, windowMs] = [this.#limit, this.#windowMs]
    return { calls: calls.length, violations, busiest: this.#ledger.busiest(), limit, windowMs }
  }

  forget(): void {
    this.#ledger = this.#newLedger()
    this.#calls = []
  }

  #newLedger(): UpstreamLedger {
    return new UpstreamLedger({ limit: this.#limit, windowMs: this.#windowMs })
  }

  async #taken(request: Request): Promise<Response> {
    if (this.#latencyMs > 0) await this.#pause(request.signal)
    const answer = await this.#answer(request)
    // Its headers may not be changed if it was made elsewhere.
    return new Response(answer.body, { status: answer.status, headers: new Headers(answer.headers) })
  }

  #pause(signal: AbortSignal): Promise<void> {
    return new Promise((resolve, reject) => {
      const onAbort = () => {
        cancel()
        reject(signal.reason)
      }
      const cancel = this.#clock.setTimer(() => {
        signal.removeEventListener('abort', onAbort)
        resolve()
      }, this.#latencyMs)
      signal.addEventListener('abort', onAbort, { once: true })
    })
  }

  /** After that there is room, if nobody knocks meanwhile: refused calls count too. */
  #refusal(at: number): Response {
    const { calls } = this.#ledger
    const oldest = calls[calls.length - this.#limit]?.at ?? at
    const seconds = Math.ceil((oldest + this.#windowMs - at) / 1_000)
    return Response.json({ error: 'too many calls' }, { status: 429, headers: { 'retry-after': String(seconds) } })
  }

  #budget(at: number): [string, string][] {
    const recent = this.#ledger.calls.filter((call) => call.at > at - this.#windowMs)
    const resetAt = this.#clock.date() + ((recent[0]?.at ?? at) + this.#windowMs - at)
    return [
      ['x-ratelimit-limit', String(this.#limit)],
      ['x-ratelimit-remaining', String(Math.max(0, this.#limit - recent.length))],
      ['x-ratelimit-reset', String(Math.ceil(resetAt / 1_000))],
    ]
  }
}
