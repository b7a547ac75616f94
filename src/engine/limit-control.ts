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
  readonly kind: 'bucket' | 'concurrency'
  /** Calls a window, or jobs in flight. */
  readonly limit: number
  /** Of a bucket: permits of its burst that are not back yet. */
  readonly used: number
  /** What could be granted now. */
  readonly remaining: number
  /** When nothing of it is used any more, in ms since 1970 by this process's clock; undefined if that is now. */
  readonly resetAt: number | undefined
  /** Until when it grants nothing; undefined if it grants. A full concurrency limit has no instant: see `remaining`. */
  readonly closedUntil: number | undefined
  /** What it grants when it is always asked; undefined for concurrency. */
  readonly effectivePerSecond: number | undefined
  /** What it allows for on the way to the upstream now; it grows when grants arrive late. */
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
  const rate =
    kind === 'bucket'
      ? effectivePerSecond(
          { name, kind, count: limit, window: row.windowUs, burst: row.burst, jitter: row.jitterUs },
          row.jitterUs,
        )
      : undefined
  const now = Date.now()
  return {
    name,
    scope,
    kind,
    limit,
    used,
    remaining,
    resetAt: row.fullInUs > 0 ? now + row.fullInUs / 1000 : undefined,
    closedUntil: row.opensInUs > 0 ? now + row.opensInUs / 1000 : undefined,
    effectivePerSecond: rate,
    jitterMs: kind === 'bucket' ? row.jitterUs / 1000 : undefined,
    activeTenants,
    sharePerTenant: (scope === 'tenant' ? 1 : 1 / Math.max(1, activeTenants)) * (rate ?? limit),
  }
}
