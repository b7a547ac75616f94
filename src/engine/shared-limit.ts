import { InvalidOptionsError, StoreUnavailableError } from '../errors.ts'
import { type LimitDefinition, parseLimit } from '../limits/definition.ts'
import type { Shared } from '../limits/shared.ts'
import type { Pushback } from '../limits/upstream-answer.ts'
import { changeLimit } from '../store/scripts/change-limit.ts'
import { learnShared } from '../store/scripts/learn-shared.ts'
import { readSharedLimits } from '../store/scripts/read-shared-limits.ts'
import type { LimitRule } from '../store/settings.ts'
import type { AcquireOptions } from './acquire-options.ts'
import { type Answer, lessonOfCall } from './lesson.ts'
import type { LimitGroup } from './limit-group.ts'
import { type LimitStatus, statusOf } from './limit-status.ts'
import type { Permit } from './permit-line.ts'
import type { SharedLimits } from './shared-limits.ts'

export type SharedLimitStatus = Omit<LimitStatus, 'scope' | 'activeTenants' | 'sharePerTenant'>

/** A limit that several queues are under, and code that has no queue. Made by `Sluice.limit`. */
export class SharedLimit implements Shared {
  readonly kind = 'shared'
  readonly name: string
  readonly rule: LimitRule
  readonly #group: LimitGroup
  readonly #limits: SharedLimits

  constructor(parts: { name: string; rule: LimitRule; group: LimitGroup; limits: SharedLimits }) {
    this.name = parts.name
    this.rule = parts.rule
    this.#group = parts.group
    this.#limits = parts.limits
  }

  get group(): string {
    return this.#group.name
  }

  /** Resolves when the store knows it. */
  ready(): Promise<void> {
    return this.#group.ready()
  }

  /** Changes it for every queue and process at once; it stays changed until `change` or `reset`. */
  async change(definition: LimitDefinition): Promise<void> {
    const rule = checkDefinition(this.name, definition)
    await this.ready()
    await changeLimit(this.#group.requests, { name: this.name, rule, isDeclared: false })
  }

  /** Goes back to what the code declares. */
  async reset(): Promise<void> {
    await this.ready()
    await changeLimit(this.#group.requests, { name: this.name, rule: this.rule, isDeclared: true })
  }

  async status(): Promise<SharedLimitStatus> {
    await this.#group.readable()
    const [row] = await readSharedLimits(this.#group.requests, [this.name])
    if (!row) throw new StoreUnavailableError({ reason: `it has lost the limit "${this.name}"`, outcome: 'not-sent' })
    const { scope, activeTenants, sharePerTenant, ...status } = statusOf(row, 0, this.#group.clock.date())
    return status
  }

  /**
   * Tells the limit what its upstream answered to a call that was no job: what is left of its quota, or that it pushed
   * back. Answers the pushback, if it is one.
   * @param permit - What `acquire` gave for the call: a quota counts it as in flight until then, or for a minute.
   */
  async learn(answer: Answer, permit?: Permit): Promise<Pushback | undefined> {
    const { pushback, lesson } = lessonOfCall(this.name, answer, permit, this.#group.clock.date())
    await this.ready()
    await learnShared(this.#group.requests, { limit: this.name, ...lesson })
    return pushback
  }

  /** Asks for permits of this limit alone: see `SharedLimits.acquire`. */
  acquire(options?: AcquireOptions): Promise<Permit> {
    return this.#limits.acquire(this.name, options)
  }
}

export function checkDefinition(name: string, definition: LimitDefinition): LimitRule {
  try {
    return parseLimit(name, definition)
  } catch (error) {
    throw new InvalidOptionsError('limit', [{ path: name, problem: (error as Error).message }])
  }
}
