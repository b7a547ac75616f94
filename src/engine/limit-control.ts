import { checkOptions, oneOf, optional, parsed, show } from '../assert.ts'
import type { Clock } from '../clock.ts'
import { InvalidOptionsError, type OptionProblem } from '../errors.ts'
import { attachLimits, type LimitsOf, type LimitsOption } from '../limits/attachment.ts'
import { type Shared, sharedAmong } from '../limits/shared.ts'
import type { Pushback } from '../limits/upstream-answer.ts'
import { type Level, levels, toToken } from '../store/names.ts'
import type { Requests } from '../store/requests.ts'
import { acquirePermits } from '../store/scripts/acquire-permits.ts'
import { changeSettings } from '../store/scripts/change-settings.ts'
import { learnLimit } from '../store/scripts/learn-limit.ts'
import { readLimits } from '../store/scripts/read-limits.ts'
import {
  type AttachedRule,
  type LimitChange,
  type LimitRule,
  type LimitRules,
  type LimitScope,
  limitScopes,
} from '../store/settings.ts'
import { type AcquireOptions, checkAcquire } from './acquire-options.ts'
import { Acquirer } from './acquirer.ts'
import { type Answer, lessonOfCall } from './lesson.ts'
import { type LimitStatus, statusOf } from './limit-status.ts'
import type { Log } from './log.ts'
import type { Permit } from './permit-line.ts'

const learnRules = {
  level: oneOf(levels, { default: 'normal' }),
  permit: optional(parsed(checkPermit)),
}

export class LimitControl {
  readonly #requests: Requests
  readonly #place: { readonly group: string }
  readonly #clock: Clock
  readonly #acquirer: Acquirer
  readonly #ready: () => Promise<void>

  /** Made by the queue. */
  constructor(parts: {
    requests: Requests
    place: { readonly group: string }
    clock: Clock
    log: Log
    ready: () => Promise<void>
  }) {
    this.#requests = parts.requests
    this.#place = parts.place
    this.#clock = parts.clock
    this.#ready = parts.ready
    this.#acquirer = new Acquirer({
      clock: parts.clock,
      log: parts.log,
      acquire: async (request) => {
        await parts.ready()
        return acquirePermits(parts.requests, request)
      },
    })
  }

  /**
   * Asks for permits of limits attached to this queue, or to the level that is named, for a call that is no job: all are
   * charged or none. Make the call at once when it is granted. Answers within seconds, whether Redis does or not.
   */
  acquire(names: string | readonly string[], options?: AcquireOptions): Promise<Permit> {
    try {
      return this.#acquirer.ask(checkAcquire(names, options))
    } catch (error) {
      return Promise.reject(error)
    }
  }

  /**
   * Tells a limit what its upstream answered to a call that was no job: what is left of its quota, or that it pushed back.
   * Answers the pushback, if it is one.
   * @param options - `permit` is what `acquire` gave for the call: a quota counts it as in flight until then, or for a
   * minute. `level` is the one it was asked for on, where the limit is a level's.
   */
  async learn(
    name: string,
    answer: Answer,
    options: { permit?: Permit; level?: Level } = {},
  ): Promise<Pushback | undefined> {
    const { level, permit } = checkOptions('limits.learn', options, learnRules)
    const { pushback, lesson } = lessonOfCall(name, answer, permit, this.#clock.date())
    await this.#ready()
    if (await learnLimit(this.#requests, { limit: name, level, ...lesson })) return pushback
    const problem = `is no limit of the queue or of its level ${level}: see limits.list()`
    throw new InvalidOptionsError('limits.learn', [{ path: String(name), problem }])
  }

  /** Answers that `acquire` gave without Redis since the process started. */
  get unavailable(): { readonly denied: number; readonly allowed: number } {
    return this.#acquirer.unavailable
  }

  /** Changes limits on every worker at once; the waiting backlog included. What is not named stays. */
  async change(limits: LimitsOption): Promise<void> {
    const patch: Partial<Record<LimitScope, Record<string, LimitChange>>> = {}
    eachRule(checkLimits('limits.change', limits), (scope, rule) => {
      patch[scope] ??= {}
      patch[scope][rule.name] = rule
    })
    await this.#shareable(sharedAmong(limits))
    await changeSettings(this.#requests, { limits: patch })
  }

  /** Takes a limit off while the queue runs. */
  async remove(scope: LimitScope, name: string = scope): Promise<void> {
    await this.#put(scope, name, { kind: 'none' })
  }

  /** Goes back to what the code declares. */
  async reset(scope: LimitScope, name: string = scope): Promise<void> {
    await this.#put(scope, name, { kind: 'declared' })
  }

  /** One limit by its name, a tenant's own included when a tenant is named; undefined if there is none. */
  async status(name: string, tenant?: string): Promise<LimitStatus | undefined> {
    return (await this.list(tenant)).find((limit) => limit.name === name)
  }

  /** All limits of the queue and its levels, and those of a tenant. */
  async list(tenant?: string): Promise<LimitStatus[]> {
    const { activeTenants, rows } = await readLimits(this.#requests, tenant === undefined ? '' : toToken(tenant))
    return rows.map((row) => statusOf(row, activeTenants, this.#clock.date()))
  }

  /** Resolves when the queue may be put under them. Which group it is in is known for sure when it is registered. */
  async #shareable(shared: readonly Shared[]): Promise<void> {
    if (shared.length === 0) return
    await this.#ready()
    assertGroup(shared, this.#place.group)
    await Promise.all(shared.map((each) => each.ready()))
  }

  async #put(scope: LimitScope, name: string, change: LimitChange): Promise<void> {
    if (!limitScopes.includes(scope)) {
      throw new InvalidOptionsError('limits', [{ path: 'scope', problem: `must be one of ${limitScopes.join(', ')}` }])
    }
    await changeSettings(this.#requests, { limits: { [scope]: { [name]: change } } })
  }
}

/** The rules of one tenant, by name, as its own limits. */
export function checkTenantLimits(limits: LimitsOf): readonly LimitRule[] {
  return checkLimits('tenant limits', { tenant: limits }).tenant as readonly LimitRule[]
}

function checkLimits(subject: string, limits: unknown): LimitRules {
  const problems: OptionProblem[] = []
  const rules = attachLimits(limits, 'limits', (path, problem) => problems.push({ path, problem }))
  if (problems.length > 0) throw new InvalidOptionsError(subject, problems)
  return rules
}

function assertGroup(shared: readonly Shared[], group: string): void {
  const problems = shared
    .filter((each) => each.group !== group)
    .map((each) => ({
      path: each.name,
      problem: `is of group "${each.group}", the queue of "${group}": attach it where the queue is made`,
    }))
  if (problems.length > 0) throw new InvalidOptionsError('limits.change', problems)
}

function eachRule(rules: LimitRules, visit: (scope: LimitScope, rule: AttachedRule) => void): void {
  for (const scope of limitScopes) for (const rule of rules[scope]) visit(scope, rule)
}

function checkPermit(value: unknown): Permit {
  if (typeof (value as Partial<Permit> | null)?.fence === 'string') return value as Permit
  throw new Error(`must be what limits.acquire answered for the call, not ${show(value)}`)
}
