import type { Audited, AuditMode, Difference } from '../../store/difference.ts'
import { repeatWhileUnavailable } from '../../store/repeat.ts'
import type { Requests } from '../../store/requests.ts'
import { auditClaims } from '../../store/scripts/audit-claims.ts'
import { auditDelayed } from '../../store/scripts/audit-delayed.ts'
import { auditPlaces } from '../../store/scripts/audit-places.ts'
import { auditRunning } from '../../store/scripts/audit-running.ts'
import { auditTenants, type MetTenant } from '../../store/scripts/audit-tenants.ts'
import { auditWaiting } from '../../store/scripts/audit-waiting.ts'
import { endAction } from '../../store/scripts/end-action.ts'
import { readKeys } from '../../store/scripts/read-keys.ts'

// Half a millisecond of Redis, whoever the keys belong to.
const KEYS_AT_ONCE = 500
// Redis itself takes fewer when they have many lanes. About 60 µs each.
const TENANTS_AT_ONCE = 25
const CLAIMS_AT_ONCE = 100

/** Keys of lanes name their tenant last; those of tenants only that. */
const ofLane = /^(?:lane|front):((?:high|normal|low):[^:]*):(.+)$/s
const ofTenant = /^(?:tenant|lanes|ring:(?:high|normal|low)):(.+)$/s
const ofClaim = /^claim:(\d+)$/

/**
 * In this order: a job in no place has one again before a tenant or an action is found to have none, and what is put right in
 * one part shows in the counts of the last three.
 */
export const auditParts = [
  'aside',
  'keys',
  'leases',
  'delayed',
  'dead',
  'letters',
  'running',
  'delayed-counts',
  'waiting',
] as const

type Part = (typeof auditParts)[number]

export interface AuditStep extends Audited {
  /** Tenants looked at, as tokens. */
  readonly tenants?: readonly string[]
}

/**
 * One audit of a queue, in steps. Each is one script and looks at its part of the queue at one moment: it is right by itself,
 * whatever happens between the steps, and who takes the next: nothing is kept from one to another. First records
 * in no lane; then all keys of the queue, and what they lead to; then what else stands in no lane; last the sums.
 */
export class AuditWalk {
  readonly #requests: Requests
  readonly #mode: AuditMode
  #part: Part | 'end'
  #cursor: string
  /** Where the keys under way were found: whoever goes on from there finds them again. */
  #foundAt = '0'
  #tenants: MetTenant[] = []
  #claims: string[] = []

  /** @param position - Where another walk was, or where a new one begins. */
  constructor(requests: Requests, mode: AuditMode, position = '') {
    this.#requests = requests
    this.#mode = mode
    const [part, cursor] = position.split(' ')
    this.#part = auditParts.find((known) => known === part) ?? auditParts[0]
    this.#cursor = cursor ?? '0'
  }

  get isOver(): boolean {
    return this.#part === 'end'
  }

  /** Where another can go on: what is under way now is looked at again. */
  get position(): string {
    return `${this.#part} ${this.#hasMet ? this.#foundAt : this.#cursor}`
  }

  get #hasMet(): boolean {
    return this.#tenants.length > 0 || this.#claims.length > 0
  }

  async step(): Promise<AuditStep> {
    const step = await this.#step()
    if (!this.#mode.isRepairing) return step
    const again = await this.#lookAgain(step)
    const whole = { ...step, differences: [...step.differences, ...again] }
    await this.#judgeActions(whole)
    return whole
  }

  /** Tenants that have lost a job: their counts may say that they have it, an ordered lane may wait for it. */
  async #lookAgain({ differences }: Audited): Promise<Difference[]> {
    const names = new Set(differences.map(loserOf).filter((name) => name !== undefined))
    const tenants = [...names].map((name) => ({ name, lanes: [] }))
    const again: Difference[] = []
    while (tenants.length > 0) {
      const found = await auditTenants(this.#requests, tenants.slice(0, TENANTS_AT_ONCE), this.#mode)
      tenants.splice(0, found.lookedAt)
      again.push(...found.differences)
    }
    return again
  }

  /** An action whose counts were put right may be over by them, and no job of it is left to notice. */
  async #judgeActions({ differences }: Audited): Promise<void> {
    for (const { kind, subject } of differences) {
      const [tenant, name] = subject.split(':')
      if (!kind.startsWith('action.') || tenant === undefined || name === undefined) continue
      await endAction(this.#requests, { tenant, name, verb: 'judge' }, this.#mode.nowUs)
    }
  }

  get #now(): { nowUs?: string } {
    return this.#mode.nowUs === undefined ? {} : { nowUs: this.#mode.nowUs }
  }

  async #step(): Promise<AuditStep> {
    switch (this.#part) {
      case 'keys':
        return this.#stepOverKeys()
      case 'running':
        return this.#lastOf(await auditRunning(this.#requests, this.#mode))
      case 'delayed-counts':
        return this.#lastOf(await auditDelayed(this.#requests, this.#mode))
      case 'waiting':
        return this.#lastOf(await auditWaiting(this.#requests, this.#mode))
      case 'end':
        throw new Error('the audit is over')
      default: {
        const found = await auditPlaces(this.#requests, { what: this.#part, cursor: this.#cursor }, this.#mode)
        this.#goOn(found.cursor)
        return found
      }
    }
  }

  async #stepOverKeys(): Promise<AuditStep> {
    if (this.#tenants.length > 0) return this.#stepOverTenants()
    if (this.#claims.length > 0) return this.#stepOverClaims()
    const { names, cursor, quietMs } = await repeatWhileUnavailable(() =>
      readKeys(this.#requests, { cursor: this.#cursor, count: KEYS_AT_ONCE, ...this.#now }),
    )
    this.#foundAt = this.#cursor
    this.#cursor = cursor
    this.#meet(names)
    this.#leaveKeysAtEnd()
    return { differences: [], skipped: [], quietMs }
  }

  #meet(names: readonly string[]): void {
    const lanesOf = new Map<string, string[]>()
    for (const name of names) {
      const [, lane, ownerOfLane] = ofLane.exec(name) ?? []
      const tenant = ownerOfLane ?? ofTenant.exec(name)?.[1]
      const [, fence] = ofClaim.exec(name) ?? []
      if (fence !== undefined) this.#claims.push(fence)
      if (tenant === undefined) continue
      const lanes = lanesOf.get(tenant) ?? []
      lanesOf.set(tenant, lanes)
      if (lane !== undefined) lanes.push(lane)
    }
    for (const [name, lanes] of lanesOf) this.#tenants.push({ name, lanes })
  }

  async #stepOverTenants(): Promise<AuditStep> {
    const found = await auditTenants(this.#requests, this.#tenants.slice(0, TENANTS_AT_ONCE), this.#mode)
    const tenants = this.#tenants.splice(0, found.lookedAt).map(({ name }) => name)
    this.#leaveKeysAtEnd()
    return { ...found, tenants }
  }

  async #stepOverClaims(): Promise<AuditStep> {
    const found = await auditClaims(this.#requests, this.#claims.slice(0, CLAIMS_AT_ONCE), this.#mode)
    this.#claims.splice(0, found.lookedAt)
    this.#leaveKeysAtEnd()
    return found
  }

  #leaveKeysAtEnd(): void {
    if (!this.#hasMet) this.#goOn(this.#cursor)
  }

  /** To the next step of this part, or of the next one when the cursor is at its end. */
  #goOn(cursor: string): void {
    this.#cursor = cursor
    if (cursor === '0') this.#part = auditParts[auditParts.indexOf(this.#part as Part) + 1] ?? 'end'
  }

  #lastOf(found: Audited): AuditStep {
    this.#goOn('0')
    return found
  }
}

/**
 * The tenant that has lost a job, as a token. Only when the counts of what runs are right can be said that it is in no claim
 * that had lost its lease.
 */
function loserOf({ kind, subject, expected, found }: Difference): string | undefined {
  if (kind === 'tenant.running') return Number(found) > Number(expected) ? subject : undefined
  // The key of a job ends with its tenant.
  return kind === 'delayed.record' || kind === 'delayed.running' ? subject.split(':')[3] : undefined
}
