import type { Level } from '../../../src/store/names.ts'
import { limitsAt, limitsOf } from './limits.ts'
import { isHeld, latestInstant, type OpenLimit } from './open-limit.ts'
import type { QueueState } from './queue-state.ts'
import { OpenQuota } from './quota.ts'
import type { Tenant } from './tenant.ts'

/** What one turn may cost, where jobs can cost more than one permit. */
export class Budget {
  spent = 0
  /** The turn, or what the limits have for it, was too little for a further job: its next turn may be in this claim. */
  isUsedUp = false
  /** What the first job would have cost, if that was too much. */
  need: number | undefined
  /** How many jobs there are slots for. */
  readonly slots: number
  readonly #rest: number
  readonly #now: number
  readonly #permits: number
  readonly #scopes: readonly (readonly [scope: 'queue' | 'level' | 'tenant', limits: readonly OpenLimit[]])[]

  constructor(queue: QueueState, tenant: Tenant, standing: Level, rest: number) {
    this.#rest = rest
    this.#now = queue.now
    this.#scopes = [
      ['queue', limitsAt(queue, 'queue')],
      ['level', limitsAt(queue, standing)],
      ['tenant', limitsOf(queue, tenant)],
    ]
    const all = this.#scopes.flatMap(([, limits]) => limits)
    const infinity = Number.POSITIVE_INFINITY
    this.slots = Math.min(infinity, ...all.filter(isHeld).map(({ meter }) => meter.available()))
    this.#permits = Math.min(
      infinity,
      ...all
        .filter((limit) => !isHeld(limit))
        .map(({ meter }) => (meter instanceof OpenQuota ? meter.largest() : meter.available())),
    )
  }

  /** The first job may be one that the limits have saved up for; the others must fit into what is there. */
  takes(cost: number): boolean {
    if (this.spent >= this.#rest || (this.spent > 0 && this.spent + cost > this.#permits)) {
      this.isUsedUp = true
      return false
    }
    if (this.spent === 0 && this.#scopes.some(([, limits]) => latestInstant(limits, cost).until > this.#now)) {
      this.need = cost
      return false
    }
    this.spent += cost
    return true
  }

  /** Who cannot grant what is needed, and until when: the tenant's own limits are asked first. */
  lacking(): { scope: 'queue' | 'level' | 'tenant'; until: number; last: OpenLimit | undefined } | undefined {
    for (const [scope, limits] of [...this.#scopes].reverse()) {
      const { until, last } = latestInstant(limits, this.need ?? 1)
      if (until > this.#now) return { scope, until: Math.max(until, this.#now + 1), last }
    }
    return undefined
  }
}
