import type { Clock } from '../../clock.ts'
import type { Audited, Difference } from '../../store/difference.ts'
import type { Requests } from '../../store/requests.ts'
import { takeAudit } from '../../store/scripts/take-audit.ts'
import type { IdlePace } from '../idle-pace.ts'
import { isStoreAway } from '../is-store-away.ts'
import { LAST_WORDS_MS, settledWithin } from '../last-words.ts'
import type { Log } from '../log.ts'
import type { AuditSettings } from './audit-options.ts'
import { AuditWalk } from './audit-walk.ts'

// Nobody looks right after its start: most processes of a deploy start together, and some end soon.
const FIRST_LOOK_MS = 120_000
// Whoever dies with the audit in hand delays it by this many steps of an idle queue: nobody waits for it.
const LEASE_STEPS = 10
const SHORTEST_LEASE_MS = 1_000
// Without a claim for so long a queue is idle, and its processes send next to nothing.
const IDLE_AFTER_MS = 1_000
// Those that wait for one instant do not come all at once.
const SPREAD = 0.1
const SHOWN = 5

/**
 * The repeating audit. One process of all that work for the queue has it, under a lease, and takes a step now and then; the
 * others ask when the lease is over. How far it is, is stored with the lease, so that another goes on from there. Nobody is
 * woken for it, and no claim knows of it.
 */
export class Auditor {
  readonly #queue: string
  readonly #requests: Requests
  readonly #settings: AuditSettings
  readonly #leaseMs: number
  readonly #clock: Clock
  readonly #pace: IdlePace
  readonly #log: Log
  /** While this process has the audit. */
  #walk: AuditWalk | undefined
  #renewAt = 0
  #isIdle = true
  #hasFailed = false
  #isServing = false
  #isClosed = false
  #running: Promise<void> | undefined
  #cancelTimer: (() => void) | undefined
  #leavePace: (() => void) | undefined

  constructor(parts: {
    name: string
    requests: Requests
    settings: AuditSettings
    clock: Clock
    pace: IdlePace
    log: Log
  }) {
    this.#queue = parts.name
    this.#requests = parts.requests
    this.#settings = parts.settings
    this.#leaseMs = Math.max(SHORTEST_LEASE_MS, LEASE_STEPS * parts.settings.idleStepMs)
    this.#clock = parts.clock
    this.#pace = parts.pace
    this.#log = parts.log
  }

  /** This process works for the queue: it looks after it as well. */
  serve(): void {
    if (this.#isServing || this.#isClosed || !this.#settings.enabled) return
    this.#isServing = true
    this.#leavePace = this.#pace.join()
    this.#after(Math.min(FIRST_LOOK_MS, this.#settings.everyMs) * (0.5 + Math.random() / 2))
  }

  /** Another goes on from where this one last said that it was. */
  async close(): Promise<void> {
    this.#isClosed = true
    this.#leavePace?.()
    this.#cancelTimer?.()
    await settledWithin(this.#running, LAST_WORDS_MS)
  }

  #after(ms: number): void {
    if (this.#isClosed) return
    this.#cancelTimer = this.#clock.setTimer(() => {
      this.#running = this.#goOn().then((nextMs) => this.#after(nextMs))
    }, ms)
  }

  /** One request. Answers how long to wait for the next. */
  async #goOn(): Promise<number> {
    try {
      if (!this.#walk || this.#walk.isOver || this.#clock.now() >= this.#renewAt) return await this.#take()
      this.#report(await this.#walk.step())
      this.#hasFailed = false
      return this.#paceMs()
    } catch (error) {
      this.#fail(error)
      return this.#settings.idleStepMs
    }
  }

  async #take(): Promise<number> {
    const sentAt = this.#clock.now()
    const walk = this.#walk
    const position = walk === undefined ? '' : walk.isOver ? 'end' : walk.position
    const { everyMs } = this.#settings
    const reply = await takeAudit(this.#requests, { leaseMs: this.#leaseMs, everyMs, position })
    if (reply.word === 'wait') {
      this.#walk = undefined
      return reply.waitMs * (1 + Math.random() * SPREAD) + 1
    }
    this.#renewAt = sentAt + this.#leaseMs / 3
    if (!walk || reply.position !== position) {
      this.#walk = new AuditWalk(this.#requests, { isRepairing: true }, reply.position)
    }
    this.#isIdle = reply.quietMs > IDLE_AFTER_MS
    return this.#paceMs()
  }

  #paceMs(): number {
    const { stepMs, idleStepMs } = this.#settings
    return this.#isIdle ? this.#pace.stretch(Math.max(stepMs, idleStepMs)) : stepMs
  }

  #report({ differences, quietMs }: Audited): void {
    this.#isIdle = quietMs > IDLE_AFTER_MS
    if (differences.length === 0) return
    this.#log({
      level: 'warn',
      event: 'audit.repaired',
      message: `Queue "${this.#queue}": the audit has put right ${differences.length} differences: ${shown(differences)}.`,
      differences,
    })
  }

  /** Once until it works again; that the store is away, or that this process ends, is no trouble of the audit. */
  #fail(error: unknown): void {
    this.#walk = undefined
    if (this.#hasFailed || this.#isClosed || isStoreAway(error)) return
    this.#hasFailed = true
    this.#log({
      level: 'warn',
      event: 'audit.failed',
      message: `Queue "${this.#queue}": a step of the repeating audit failed; it goes on later.`,
      error,
    })
  }
}

function shown(differences: readonly Difference[]): string {
  const first = differences.slice(0, SHOWN).map(({ kind, subject, expected, found }) => {
    const whose = subject === '' ? '' : ` of ${subject}`
    return `${kind}${whose} (${found || 'none'} instead of ${expected || 'none'})`
  })
  const rest = differences.length - first.length
  return first.join(', ') + (rest > 0 ? `, and ${rest} more` : '')
}
