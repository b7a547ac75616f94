import { checkOptions, integer, number, oneOf, optional, type Report } from '../assert.ts'
import { definedOnly } from '../defined-only.ts'
import { InvalidOptionsError } from '../errors.ts'
import type { LimitsOf } from '../limits/attachment.ts'
import { type Level, levels, problemOfName, toToken } from '../store/names.ts'
import type { Requests } from '../store/requests.ts'
import { changeTenant } from '../store/scripts/change-tenant.ts'
import { type FoundTenant, readTenant } from '../store/scripts/read-tenant.ts'
import { checkTenantLimits } from './limit-control.ts'

/** Settings of one tenant; what is not given stays. */
export interface TenantSettings {
  /** Its share against the others': 3 gets three times as much. @default 1 */
  weight?: number
  /** A head start (negative) or handicap in ms: premium −1,000,000, low +1,000,000. @default 0 */
  basePriority?: number
  /** Where all its lines stand, whatever their level; null takes the override off. */
  level?: Level | null
}

/** A tenant as it stands. */
export interface TenantView extends FoundTenant {
  readonly tenant: string
}

const rules = {
  weight: optional(number({ min: 0.01, max: 1_000 })),
  basePriority: optional(integer({ min: -1e12, max: 1e12 })),
  level: (value: unknown, path: string, report: Report) =>
    value === null ? null : optional(oneOf(levels))(value, path, report),
}

/** One tenant of a queue: its settings, and how it stands. Changes act on its backlog at once. */
export class TenantControl {
  readonly name: string
  readonly #token: string
  readonly #requests: Requests

  /** Made by the queue. */
  constructor(name: string, requests: Requests) {
    const problem = problemOfName(name)
    if (problem) throw new InvalidOptionsError('tenant', [{ path: 'name', problem }])
    this.name = name
    this.#token = toToken(name)
    this.#requests = requests
  }

  async set(settings: TenantSettings): Promise<void> {
    const { weight, basePriority, level } = checkOptions(`tenant "${this.name}"`, settings, rules)
    const patch = definedOnly({ weight, base: basePriority, level: level === null ? ('' as const) : level })
    await changeTenant(this.#requests, this.#token, patch)
  }

  /** Its own limits: the same name overrides the template, another one stacks. */
  async setLimits(limits: LimitsOf): Promise<void> {
    const patch = Object.fromEntries(checkTenantLimits(limits).map((rule) => [rule.name, rule]))
    await changeTenant(this.#requests, this.#token, { limits: patch })
  }

  /** Goes back to the template. */
  async resetLimit(name: string): Promise<void> {
    await changeTenant(this.#requests, this.#token, { limits: { [name]: { name, kind: 'declared' } } })
  }

  /** None of its jobs start until `resume`. */
  async pause(): Promise<void> {
    await changeTenant(this.#requests, this.#token, { paused: true })
  }

  async resume(): Promise<void> {
    await changeTenant(this.#requests, this.#token, { paused: false })
  }

  /** Back in line now, if it is parked. Its limits are asked again with its turn, and may park it anew. */
  async unpark(): Promise<void> {
    await changeTenant(this.#requests, this.#token, { unpark: true })
  }

  async view(): Promise<TenantView> {
    return { tenant: this.name, ...(await readTenant(this.#requests, this.#token)) }
  }
}
