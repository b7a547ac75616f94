import { InvalidOptionsError, type OptionProblem } from '../errors.ts'
import { attachLimits, type LimitsOf, type LimitsOption } from '../limits/attachment.ts'
import { effectivePerSecond } from '../limits/definition.ts'
import { toToken } from '../store/names.ts'
import type { Requests } from '../store/requests.ts'
import { changeSettings } from '../store/scripts/change-settings.ts'
import { type LimitRow, readLimits } from '../store/scripts/read-limits.ts'
import { type LimitChange, type LimitRule, type LimitRules, type LimitScope, limitScopes } from '../store/settings.ts'

/** How a limit stands. */
export interface LimitStatus {
  readonly name: string
  readonly scope: LimitScope
  readonly kind: LimitRule['kind']
  /** Calls a window, or jobs in flight; of a quota what its upstream allows, 0 while it has not told. */
  readonly limit: number
  /** Of a bucket: permits of its burst that are not back yet. Of a quota: what is in flight. */
  readonly used: number
  /** What could be granted now. */
  readonly remaining: number
  /** When nothing of it is used any more, in ms since 1970 by this process's clock; undefined if that is now. */
  readonly resetAt: number | undefined
  /**
   * Until when it grants nothing; undefined if it grants, or nobody knows: a full concurrency limit, a quota that waits for
   * its first answer.
   */
  readonly closedUntil: number | undefined
  /** Until when an upstream that pushed back has closed it. */
  readonly pushedBackUntil: number | undefined
  /** What it grants when it is always asked, less what an upstream that pushed back has cut; undefined without a rate. */
  readonly effectivePerSecond: number | undefined
  /** What it allows for on the way to the upstream now; it grows when grants arrive late. Undefined without a rate. */
  readonly jitterMs: number | undefined
  readonly activeTenants: number
  /** What each active tenant gets if all have equal weight and use it. */
  readonly sharePerTenant: number
}

export class LimitControl {
  readonly #requests: Requests

  /** Made by the queue. */
  constructor(requests: Requests) {
    this.#requests = requests
  }

  /** Changes limits on every worker at once; the waiting backlog included. What is not named stays. */
  async change(limits: LimitsOption): Promise<void> {
    const patch: Partial<Record<LimitScope, Record<string, LimitChange>>> = {}
    eachRule(checkLimits('limits.change', limits), (scope, rule) => {
      patch[scope] ??= {}
      patch[scope][rule.name] = rule
    })
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
    return rows.map((row) => toStatus(row, activeTenants))
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
  return checkLimits('tenant limits', { tenant: limits }).tenant
}

function checkLimits(subject: string, limits: unknown): LimitRules {
  const problems: OptionProblem[] = []
  const rules = attachLimits(limits, 'limits', (path, problem) => problems.push({ path, problem }))
  if (problems.length > 0) throw new InvalidOptionsError(subject, problems)
  return rules
}

function eachRule(rules: LimitRules, visit: (scope: LimitScope, rule: LimitRule) => void): void {
  for (const scope of limitScopes) for (const rule of rules[scope]) visit(scope, rule)
}

function toStatus(row: LimitRow, activeTenants: number): LimitStatus {
  const { scope, name, kind, limit, used, available: remaining } = row
  const rate = ratePerSecond(row)
  const now = Date.now()
  const instant = (inUs: number) => (inUs > 0 ? now + inUs / 1000 : undefined)
  return {
    name,
    scope,
    kind,
    limit,
    used,
    remaining,
    resetAt: instant(row.fullInUs),
    closedUntil: instant(row.opensInUs),
    pushedBackUntil: instant(row.pushedForUs),
    effectivePerSecond: rate,
    jitterMs: rate === undefined ? undefined : row.jitterUs / 1000,
    activeTenants,
    sharePerTenant: (scope === 'tenant' ? 1 : 1 / Math.max(1, activeTenants)) * (rate ?? limit),
  }
}

function ratePerSecond({ name, kind, limit, windowUs, burst, jitterUs, share }: LimitRow): number | undefined {
  if (kind === 'window') return (limit * 1_000_000) / windowUs
  if (kind !== 'bucket') return undefined
  const rule = { name, kind, count: limit, window: windowUs, burst, jitter: jitterUs }
  return (effectivePerSecond(rule, jitterUs) * share) / 1_000
}
