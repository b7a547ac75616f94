import type { Clock } from '../clock.ts'
import { InvalidOptionsError, isSluiceError, StoreUnavailableError } from '../errors.ts'
import type { Level } from '../store/names.ts'
import type { Acquire, AcquireAnswer, AcquireReply } from '../store/scripts/acquire-permits.ts'
import type { Log } from './log.ts'

/** What a caller without a job gets. */
export interface Permit {
  readonly granted: boolean
  /** After how long it is worth asking again; 0 if it was granted. */
  readonly waitMs: number
  /** What could be granted to others now; null: nobody knows (Redis is away, or an upstream has not told). */
  readonly remaining: number | null
  /** Which member of a pool granted it, by the limit's name: use that one's token. */
  readonly grant: Readonly<Record<string, string>>
  /** How many it is; 0 if it was not granted. */
  readonly permits: number
  /** Tells it apart: give it to `learn` with the upstream's answer. Empty if it was not granted by Redis. */
  readonly fence: string
}

export interface Asked {
  readonly limits: readonly string[]
  readonly permits: number
  readonly level: Level
  readonly onUnavailable: 'deny' | 'allow'
}

interface Waiting extends Asked {
  readonly resolve: (permit: Permit) => void
  readonly reject: (error: unknown) => void
}

/** Callers of the same limits go out together. The more wait, the more go in one call: the script is short for each. */
const AT_ONCE = 100
const CALLS_IN_FLIGHT = 2
/** A caller waits no longer for Redis than this: it would rather be told. */
const PATIENCE_MS = 2_000
const UNAVAILABLE_WAIT_MS = 2_000
/** Grants that come too late are asked for again so often; the limit widens its jitter meanwhile. */
const TRIES = 5
const LOG_EVERY_MS = 10_000

/** Charges limits for callers that have no job. Without Redis it denies, or allows where the caller asked for that. */
export class Acquirer {
  /** Answers given without Redis since the process started. */
  readonly unavailable = { denied: 0, allowed: 0 }
  readonly #acquire: Acquire
  readonly #clock: Clock
  readonly #log: Log
  readonly #lines = new Map<string, Line>()
  #loggedAt = Number.NEGATIVE_INFINITY

  constructor(parts: { acquire: Acquire; clock: Clock; log: Log }) {
    this.#clock = parts.clock
    this.#acquire = parts.acquire
    this.#log = parts.log
  }

  ask(asked: Asked): Promise<Permit> {
    const key = `${asked.level} ${asked.limits.join(' ')}`
    let line = this.#lines.get(key)
    if (!line) {
      line = new Line(asked, this.#acquire, this.#clock, (waiting, error) => this.#settleWithout(waiting, error))
      this.#lines.set(key, line)
    }
    return line.ask(asked)
  }

  #settleWithout(waiting: Waiting, error: unknown): void {
    if (!isUnavailable(error)) {
      waiting.reject(error)
      return
    }
    const isAllowed = waiting.onUnavailable === 'allow'
    this.unavailable[isAllowed ? 'allowed' : 'denied'] += 1
    if (isAllowed) this.#warn(waiting, error)
    const allowed = { ...denied, granted: true, permits: waiting.permits }
    waiting.resolve(isAllowed ? allowed : { ...denied, waitMs: UNAVAILABLE_WAIT_MS })
  }

  #warn({ limits }: Waiting, error: unknown): void {
    const now = this.#clock.now()
    if (now - this.#loggedAt < LOG_EVERY_MS) return
    this.#loggedAt = now
    const message = `Redis does not answer: permits of ${limits.join(', ')} are given uncounted, as onUnavailable asks for.`
    const { allowed } = this.unavailable
    this.#log({ level: 'warn', event: 'limits.allowed-uncounted', message, limits, allowed, cause: error })
  }
}

function isUnavailable(error: unknown): boolean {
  return isSluiceError(error) && (error.code === 'SLUICE_STORE_UNAVAILABLE' || error.code === 'SLUICE_OUTCOME_UNKNOWN')
}

/** Those who ask the same limits on the same level. */
class Line {
  readonly #asked: Pick<Asked, 'limits' | 'level'>
  readonly #acquire: Acquire
  readonly #clock: Clock
  readonly #settleWithout: (waiting: Waiting, error: unknown) => void
  #waiting: Waiting[] = []
  #inFlight = 0
  #isScheduled = false
  #stale: { fence: string; permits: number } | undefined

  constructor(
    asked: Pick<Asked, 'limits' | 'level'>,
    acquire: Acquire,
    clock: Clock,
    settleWithout: (waiting: Waiting, error: unknown) => void,
  ) {
    this.#asked = { limits: asked.limits, level: asked.level }
    this.#acquire = acquire
    this.#clock = clock
    this.#settleWithout = settleWithout
  }

  ask(asked: Asked): Promise<Permit> {
    return new Promise((resolve, reject) => {
      this.#waiting.push({ ...asked, resolve, reject })
      this.#schedule()
    })
  }

  /** After this turn of the loop, so that all who ask in it go together. */
  #schedule(): void {
    if (this.#isScheduled || this.#inFlight >= CALLS_IN_FLIGHT) return
    this.#isScheduled = true
    setImmediate(() => {
      this.#isScheduled = false
      this.#send()
    })
  }

  #send(): void {
    while (this.#waiting.length > 0 && this.#inFlight < CALLS_IN_FLIGHT) {
      this.#inFlight += 1
      const callers = this.#waiting.splice(0, AT_ONCE)
      void this.#answer(callers).finally(() => {
        this.#inFlight -= 1
        if (this.#waiting.length > 0) this.#schedule()
      })
    }
  }

  async #answer(callers: readonly Waiting[]): Promise<void> {
    try {
      let left = callers
      for (let tries = 1; left.length > 0; tries++) left = await this.#askFor(left, tries === TRIES)
    } catch (error) {
      for (const caller of callers) this.#settleWithout(caller, error)
    }
  }

  /** Answers those whose grants came too late. */
  async #askFor(callers: readonly Waiting[], isLast: boolean): Promise<readonly Waiting[]> {
    const stale = this.#stale
    this.#stale = undefined
    const sentAt = this.#clock.now()
    const permits = callers.map((caller) => caller.permits)
    const asked = { ...this.#asked, permits, stale, giveUpAfterMs: PATIENCE_MS }
    const reply = await withPatience(this.#acquire(asked))
    if (reply.word !== 'answers') return this.#refuse(callers, reply)
    const isStale = reply.freshMs !== undefined && this.#clock.now() - sentAt > reply.freshMs
    const late: Waiting[] = []
    let latePermits = 0
    reply.answers.forEach((answer, at) => {
      const caller = callers[at] as Waiting
      if (!isStale || !answer.isGranted) caller.resolve(permitOf(answer, caller.permits, reply.fence))
      else {
        latePermits += caller.permits
        if (isLast) caller.resolve({ ...denied, waitMs: reply.freshMs ?? 0 })
        else late.push(caller)
      }
    })
    if (latePermits > 0) this.#stale = { fence: reply.fence, permits: latePermits }
    return late
  }

  /** One caller asks for too much: it is told, and the others are asked for without it. */
  #refuse(callers: readonly Waiting[], reply: Exclude<AcquireReply, { word: 'answers' }>): readonly Waiting[] {
    const problem = problemOf(reply)
    const isCostly = (caller: Waiting) => reply.word !== 'costly' || caller.permits > reply.most
    for (const caller of callers.filter(isCostly)) caller.reject(new InvalidOptionsError('limits.acquire', [problem]))
    return callers.filter((caller) => !isCostly(caller))
  }
}

const denied: Permit = { granted: false, waitMs: 0, remaining: null, permits: 0, grant: {}, fence: '' }

function permitOf({ isGranted, waitUs, remaining, grant }: AcquireAnswer, permits: number, fence: string): Permit {
  const left = remaining ?? null
  if (isGranted) return { granted: true, waitMs: 0, remaining: left, permits, grant, fence }
  return { ...denied, waitMs: Math.ceil(waitUs / 1000), remaining: left }
}

/** What is granted after that is lost: nobody waits for it. */
async function withPatience<T>(call: Promise<T>): Promise<T> {
  let timer: NodeJS.Timeout | undefined
  const isOver = new Promise<never>((_, reject) => {
    const reason = `no answer within ${PATIENCE_MS} ms`
    timer = setTimeout(() => reject(new StoreUnavailableError({ reason, outcome: 'unknown' })), PATIENCE_MS)
  })
  try {
    return await Promise.race([call, isOver])
  } finally {
    clearTimeout(timer)
  }
}

function problemOf(reply: Exclude<AcquireReply, { word: 'answers' }>): { path: string; problem: string } {
  if (reply.word === 'costly') {
    return { path: 'permits', problem: `are more than "${reply.limit}" can ever grant at once: at most ${reply.most}` }
  }
  if (reply.word === 'slots') {
    const why = 'counts jobs in flight, and a caller without a job has no lease that would end: run it as a job instead'
    return { path: reply.limit, problem: why }
  }
  return { path: reply.limit, problem: 'is not a limit of the queue, or of the level that was named' }
}
