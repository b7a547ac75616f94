import { InvalidOptionsError } from '../errors.ts'
import { acquireShared } from '../store/scripts/acquire-shared.ts'
import { type AcquireOptions, checkAcquire } from './acquire-options.ts'
import { Acquirer } from './acquirer.ts'
import type { LimitGroup } from './limit-group.ts'
import type { Log } from './log.ts'
import { PATIENCE_MS, type Permit } from './permit-line.ts'
import type { SharedLimit } from './shared-limit.ts'

/** For `Sluice.limit`, which makes them. */
export let addSharedLimit: (limits: SharedLimits, limit: SharedLimit, group: LimitGroup) => void

/** Shared limits, for code that has no queue. */
export class SharedLimits {
  readonly #log: Log
  readonly #limits = new Map<string, { limit: SharedLimit; group: LimitGroup }>()
  readonly #acquirers = new Map<LimitGroup, Acquirer>()

  static {
    addSharedLimit = (limits, limit, group) => limits.#limits.set(limit.name, { limit, group })
  }

  /** Made by `Sluice`. */
  constructor(log: Log) {
    this.#log = log
  }

  get(name: string): SharedLimit | undefined {
    return this.#limits.get(name)?.limit
  }

  /**
   * Asks for permits of one or several limits of one group: all are charged or none. Make the call at once when it is
   * granted. Answers within seconds, whether Redis does or not.
   */
  acquire(names: string | readonly string[], options?: AcquireOptions): Promise<Permit> {
    // Not async: a promise more for each caller is a tenth of what it costs.
    try {
      const asked = checkAcquire(names, options)
      return this.#acquirerOf(this.#groupOf(asked.limits)).ask(asked)
    } catch (error) {
      return Promise.reject(error)
    }
  }

  /** Answers given without Redis since the process started. */
  get unavailable(): { readonly denied: number; readonly allowed: number } {
    const all = [...this.#acquirers.values()].map(({ unavailable }) => unavailable)
    return {
      denied: all.reduce((sum, { denied }) => sum + denied, 0),
      allowed: all.reduce((sum, { allowed }) => sum + allowed, 0),
    }
  }

  #groupOf(names: string | readonly string[]): LimitGroup {
    if (typeof names === 'string') return this.#groupOfOne(names)
    const [first, second] = new Set(names.map((name) => this.#groupOfOne(name)))
    if (second) {
      const problem = `are of different groups (${first?.name}, ${second.name}): make them with one group`
      throw new InvalidOptionsError('limits.acquire', [{ path: 'names', problem }])
    }
    return first as LimitGroup
  }

  #groupOfOne(name: string): LimitGroup {
    const known = this.#limits.get(name)
    if (known) return known.group
    const problem = 'is not a shared limit of this process: make it with sluice.limit(name, definition)'
    throw new InvalidOptionsError('limits.acquire', [{ path: name, problem }])
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
