import type { Clock } from '../clock.ts'
import { InvalidOptionsError, StoreUnavailableError } from '../errors.ts'
import type { Level } from '../store/names.ts'
import type { Acquire, AcquireReply, StaleGrants } from '../store/scripts/acquire-permits.ts'

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

/** One who waits for an answer. */
export interface Caller {
  readonly permits: number
  readonly onUnavailable: 'deny' | 'allow'
  readonly resolve: (permit: Permit) => void
  readonly reject: (error: unknown) => void
}

type Answered = Extract<AcquireReply, { word: 'answers' }>
type Refusal = Exclude<AcquireReply, Answered>

/** Callers answered by one call: the script is short for each, and charges those who ask for the same in one step. */
const AT_ONCE = 250
/** While Redis decides for some, this process answers others. */
const CALLS_IN_FLIGHT = 2
/** Fewer than these are not worth two calls. */
const WORTH_HALVING = 64
/** A caller waits no longer for Redis than this: it would rather be told. */
export const PATIENCE_MS = 2_000
/** Grants that come too late are asked for again so often; the limit widens its jitter meanwhile. */
const TRIES = 5

/** Those who ask the same limits on the same level: all who ask in one turn of the event loop go out together. */
export class PermitLine {
  readonly #limits: readonly string[]
  readonly #level: Level
  readonly #acquire: Acquire
  readonly #clock: Clock
  readonly #settleWithout: (caller: Caller, error: unknown) => void
  #waiting: Caller[] = []
  #inFlight = 0
  #isScheduled = false
  /** What nobody asked for again, at most one of each call in flight; the next calls tell of it, one each. */
  readonly #stale: StaleGrants[] = []

  constructor(parts: {
    limits: readonly string[]
    level: Level
    acquire: Acquire
    clock: Clock
    /** Answers a caller whom Redis does not. */
    settleWithout: (caller: Caller, error: unknown) => void
  }) {
    this.#limits = parts.limits
    this.#level = parts.level
    this.#acquire = parts.acquire
    this.#clock = parts.clock
    this.#settleWithout = parts.settleWithout
  }

  ask(permits: number, onUnavailable: 'deny' | 'allow'): Promise<Permit> {
    return new Promise((resolve, reject) => {
      this.#waiting.push({ permits, onUnavailable, resolve, reject })
      if (!this.#isScheduled && this.#inFlight < CALLS_IN_FLIGHT) this.#schedule()
    })
  }

  #schedule(): void {
    this.#isScheduled = true
    setImmediate(() => {
      this.#isScheduled = false
      this.#send()
    })
  }

  #send(): void {
    while (this.#waiting.length > 0 && this.#inFlight < CALLS_IN_FLIGHT) {
      this.#inFlight += 1
      void this.#answer(this.#next()).finally(() => {
        this.#inFlight -= 1
        if (this.#waiting.length > 0 && !this.#isScheduled) this.#schedule()
      })
    }
  }

  /** Half of them when Redis has nothing to do: callers ask again when they are answered, and so would all in step. */
  #next(): readonly Caller[] {
    const count = this.#waiting.length
    const isHalved = this.#inFlight === 1 && count >= WORTH_HALVING
    const most = Math.min(AT_ONCE, isHalved ? Math.ceil(count / 2) : count)
    if (most < count) return this.#waiting.splice(0, most)
    const all = this.#waiting
    this.#waiting = []
    return all
  }

  async #answer(callers: readonly Caller[]): Promise<void> {
    let left = callers
    let stale = this.#stale.shift()
    try {
      for (let tries = 1; left.length > 0; tries++) {
        const sentAt = this.#clock.now()
        const reply = await this.#call(left, stale)
        if (reply.word !== 'answers') {
          left = refuse(left, reply)
          continue
        }
        const isFresh = reply.freshMs === undefined || this.#clock.now() - sentAt <= reply.freshMs
        left = settle(left, reply, isFresh)
        stale = left.length > 0 ? staleOf(reply, left) : undefined
        if (tries < TRIES) continue
        for (const { resolve } of left) resolve(denied(reply.freshMs ?? 0, null))
        break
      }
      if (stale) this.#stale.push(stale)
    } catch (error) {
      for (const caller of left) this.#settleWithout(caller, error)
    }
  }

  #call(callers: readonly Caller[], stale: StaleGrants | undefined): Promise<AcquireReply> {
    const permits = callers.map((caller) => caller.permits)
    const request = { limits: this.#limits, level: this.#level, permits, stale, giveUpAfterMs: PATIENCE_MS }
    return withPatience(this.#acquire(request))
  }
}

/** Answers those whose grants came too late. */
function settle(callers: readonly Caller[], { answers, fence }: Answered, isFresh: boolean): readonly Caller[] {
  const late: Caller[] = []
  let at = 0
  for (const answer of answers) {
    const { isGranted, remaining, grant } = answer
    const waitMs = Math.ceil(answer.waitUs / 1000)
    for (let behind = answer.callers - 1; behind >= 0; behind--) {
      const caller = callers[at++] as Caller
      const { permits } = caller
      if (!isGranted) caller.resolve(denied(waitMs, remaining ?? null))
      else if (!isFresh) late.push(caller)
      else {
        // What is left after the last of them, and before that what those behind this one got.
        const left = remaining === undefined ? null : remaining + behind * permits
        caller.resolve({ granted: true, waitMs: 0, remaining: left, permits, grant, fence })
      }
    }
  }
  return late
}

/** One caller asks for too much: it is told, and the others are asked for without it. */
function refuse(callers: readonly Caller[], reply: Refusal): readonly Caller[] {
  const problem = problemOf(reply)
  const isCostly = (caller: Caller) => reply.word !== 'costly' || caller.permits > reply.most
  for (const caller of callers.filter(isCostly)) caller.reject(new InvalidOptionsError('limits.acquire', [problem]))
  return callers.filter((caller) => !isCostly(caller))
}

const noGrant = Object.freeze({})

export function denied(waitMs: number, remaining: number | null): Permit {
  return { granted: false, waitMs, remaining, permits: 0, grant: noGrant, fence: '' }
}

/** All that was granted by a reply that came too late. */
function staleOf({ fence, answers }: Answered, late: readonly Caller[]): StaleGrants {
  const members: { limit: string; member: string; permits: number }[] = []
  let at = 0
  for (const { isGranted, callers, grant } of answers) {
    if (!isGranted) continue
    const permits = sumOf(late.slice(at, at + callers))
    at += callers
    for (const [limit, member] of Object.entries(grant)) members.push({ limit, member, permits })
  }
  return { fence, permits: sumOf(late), members }
}

function sumOf(callers: readonly Caller[]): number {
  return callers.reduce((sum, { permits }) => sum + permits, 0)
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

function problemOf(reply: Refusal): { path: string; problem: string } {
  if (reply.word === 'costly') {
    return { path: 'permits', problem: `are more than "${reply.limit}" can ever grant at once: at most ${reply.most}` }
  }
  if (reply.word === 'slots') {
    const why = 'counts jobs in flight, and a caller without a job has no lease that would end: run it as a job instead'
    return { path: reply.limit, problem: why }
  }
  return { path: reply.limit, problem: 'is not a limit of the queue, or of the level that was named' }
}
