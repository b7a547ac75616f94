import { checkOptions, integer, oneOf } from '../assert.ts'
import { InvalidOptionsError } from '../errors.ts'
import { levels } from '../store/names.ts'
import { acquireShared } from '../store/scripts/acquire-shared.ts'
import { Acquirer, type Permit } from './acquirer.ts'
import type { LimitGroup } from './limit-group.ts'
import type { Log } from './log.ts'
import type { SharedLimit } from './shared-limit.ts'

export interface AcquireOptions {
  /**
   * All of them or none. A bucket saves up for more than its burst.
   * @default 1
   */
  permits?: number
  /**
   * A `high` caller that is refused leaves a mark until the instant it is told; `low` ones are refused meanwhile.
   * @default 'normal'
   */
  level?: 'high' | 'normal' | 'low'
  /**
   * What to answer while Redis does not: `allow` gives permits that nobody counts. They are counted in `unavailable` and
   * logged.
   * @default 'deny'
   */
  onUnavailable?: 'deny' | 'allow'
}

const LARGEST = 1_000_000_000

const acquireRules = {
  permits: integer({ min: 1, max: LARGEST, default: 1 }),
  level: oneOf(levels, { default: 'normal' }),
  onUnavailable: oneOf(['deny', 'allow'], { default: 'deny' }),
}

const defaults = checkOptions('limits.acquire', {}, acquireRules)

const PATIENCE_MS = 2_000

/** Shared limits, for code that has no queue. */
export class SharedLimits {
  readonly #log: Log
  readonly #limits = new Map<string, { limit: SharedLimit; group: LimitGroup }>()
  readonly #acquirers = new Map<LimitGroup, Acquirer>()

  /** Made by `Sluice`. */
  constructor(log: Log) {
    this.#log = log
  }

  /** @internal */
  add(limit: SharedLimit, group: LimitGroup): void {
    this.#limits.set(limit.name, { limit, group })
  }

  get(name: string): SharedLimit | undefined {
    return this.#limits.get(name)?.limit
  }

  /**
   * Asks for permits of one or several limits of one group: all are charged or none. Make the call at once when it is
   * granted. Answers within seconds, whether Redis does or not.
   */
  async acquire(names: string | readonly string[], options?: AcquireOptions): Promise<Permit> {
    const asked = checkAcquire(names, options)
    const group = this.#groupOf(asked.limits)
    return this.#acquirerOf(group).ask(asked)
  }

  /** Answers given without Redis since the process started. */
  get unavailable(): { readonly denied: number; readonly allowed: number } {
    const all = [...this.#acquirers.values()].map(({ unavailable }) => unavailable)
    return {
      denied: all.reduce((sum, { denied }) => sum + denied, 0),
      allowed: all.reduce((sum, { allowed }) => sum + allowed, 0),
    }
  }

  #groupOf(names: readonly string[]): LimitGroup {
    const groups = new Set<LimitGroup>()
    for (const name of names) {
      const known = this.#limits.get(name)
      if (!known) {
        const problem = 'is not a shared limit of this process: make it with sluice.limit(name, definition)'
        throw new InvalidOptionsError('limits.acquire', [{ path: name, problem }])
      }
      groups.add(known.group)
    }
    const [first, second] = groups
    if (second) {
      const problem = `are of different groups (${first?.name}, ${second.name}): make them with one group`
      throw new InvalidOptionsError('limits.acquire', [{ path: 'names', problem }])
    }
    return first as LimitGroup
  }

  #acquirerOf(group: LimitGroup): Acquirer {
    const known = this.#acquirers.get(group)
    if (known) return known
    const acquirer = new Acquirer({
      clock: group.clock,
      log: this.#log,
      acquire: async (request) => {
        await group.ready(PATIENCE_MS)
        return acquireShared(group.requests, request)
      },
    })
    this.#acquirers.set(group, acquirer)
    return acquirer
  }
}

export function checkAcquire(names: string | readonly string[], options: AcquireOptions | undefined) {
  const limits = typeof names === 'string' ? [names] : names
  const isList = Array.isArray(limits) && limits.length > 0 && limits.every((each) => typeof each === 'string')
  if (!isList || new Set(limits).size < limits.length) {
    const problem = 'must be the name of a limit, or a list of different ones'
    throw new InvalidOptionsError('limits.acquire', [{ path: 'names', problem }])
  }
  const chosen = options === undefined ? defaults : checkOptions('limits.acquire', options, acquireRules)
  return { limits, ...chosen }
}
