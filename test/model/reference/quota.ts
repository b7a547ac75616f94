import type { QuotaRule } from '../../../src/store/settings.ts'
import { NEVER } from './bucket.ts'
import type { Meter, MeterContext } from './meter.ts'

/** What upstreams say is left, in the reference model. */

const SECOND = 1_000_000

interface Member {
  readonly name: string
  /** Undefined: unknown. */
  left: { remaining: number; reset: number; since: number; told: number } | undefined
  limit: number
  flying: number
}

export class OpenQuota implements Meter {
  readonly jitter = undefined
  closedUntil = 0
  readonly #rule: QuotaRule
  readonly #context: MeterContext
  readonly #members: readonly Member[]

  /** @param stored - `restarts|name,remaining,reset,since,limit,flying,told|…` */
  constructor(rule: QuotaRule, stored: string | undefined, context: MeterContext, isAnyRunning: boolean) {
    this.#rule = rule
    this.#context = context
    const [restarts = '', ...texts] = stored?.split('|') ?? []
    const known = texts.map((text): Member => {
      const [name = '', ...numbers] = text.split(',')
      const [remaining = 0, reset = 0, since = 0, limit = 0, flying = 0, told = 0] = numbers.map(Number)
      const isKnown = Number(restarts) === context.restarts.count && reset > context.now && remaining >= 0
      return {
        name,
        left: isKnown ? { remaining, reset, since, told } : undefined,
        limit,
        flying: isAnyRunning ? flying : 0,
      }
    })
    this.#members = (rule.members ?? ['']).map(
      (name) => known.find((member) => member.name === name) ?? { name, left: undefined, limit: 0, flying: 0 },
    )
  }

  #availableOf({ left, limit, flying }: Member): number {
    if (!left) return flying === 0 ? 1 : 0
    const kept = limit > 0 ? Math.min(this.#rule.threshold, Math.floor(limit / 10)) : this.#rule.threshold
    return Math.max(0, left.remaining - kept)
  }

  get most(): number {
    return this.#members.reduce((sum, { limit }) => sum + limit, 0)
  }

  /** By one member. */
  largest(): number {
    return Math.max(...this.#members.map((member) => this.#availableOf(member)))
  }

  available(): number {
    if (this.closedUntil > this.#context.now) return 0
    return this.#members.reduce((sum, member) => sum + this.#availableOf(member), 0)
  }

  instant(permits: number): number {
    return Math.max(this.closedUntil, Math.min(...this.#members.map((member) => this.#instantOf(member, permits))))
  }

  #instantOf(member: Member, permits: number): number {
    if (this.#availableOf(member) >= permits) return 0
    if (!member.left) return member.flying === 0 ? 0 : NEVER
    return member.left.reset
  }

  furtherInstant(permits: number, name: string | undefined): number {
    const member = this.#payer(permits, name)
    return Math.max(this.closedUntil, member.left ? this.#instantOf(member, permits) : 0)
  }

  #payer(permits: number, name: string | undefined): Member {
    return this.#find(name) ?? this.#richest(permits)
  }

  #richest(permits: number): Member {
    const able = this.#members.filter((member) => this.#instantOf(member, permits) === 0)
    const [first] = [...able].sort((a, b) => this.#availableOf(b) - this.#availableOf(a))
    return first ?? (this.#members[0] as Member)
  }

  charge(permits: number): string {
    const member = this.#richest(permits)
    if (member.left) member.left.remaining -= permits
    member.flying += permits
    return member.name
  }

  chargeAgain(permits: number, _fence: number, name: string | undefined): void {
    const { left } = this.#payer(permits, name)
    if (left) left.remaining -= permits
  }

  release(permits: number, name: string | undefined): void {
    const member = this.#find(name)
    if (member) member.flying = Math.max(0, member.flying - permits)
  }

  refund(permits: number, fence: number, name: string | undefined): void {
    const left = this.#find(name)?.left
    if (left && fence >= left.since) left.remaining += permits
  }

  /** Answers whether it concerns one of the members. */
  learn(name: string | undefined, remaining: number, reset: number, limit: number): boolean {
    const member = this.#find(name)
    const { now } = this.#context
    if (!member || reset <= now) return false
    const left = Math.max(0, remaining - member.flying)
    if (limit > 0) member.limit = limit
    const known = member.left
    if (!known || reset > known.reset + 5 * SECOND) {
      member.left = { remaining: left, reset, since: now, told: remaining }
    } else if (remaining < known.told && reset >= known.reset - 5 * SECOND) {
      member.left = { ...known, remaining: left, told: remaining }
    } else {
      known.remaining = Math.min(known.remaining, left)
    }
    return true
  }

  #find(name = ''): Member | undefined {
    return this.#members.find((member) => member.name === name)
  }

  batch(): number {
    return 1
  }

  usage(): { used: number; unusedAt: number } {
    const used = this.#members.reduce((sum, { flying }) => sum + flying, 0)
    return { used, unusedAt: Math.max(0, ...this.#members.map(({ left }) => left?.reset ?? 0)) }
  }

  text(): string {
    const of = ({ name, left, limit, flying }: Member): string =>
      [name, left?.remaining ?? -1, left?.reset ?? 0, left?.since ?? 0, limit, flying, left?.told ?? 0].join(',')
    return [this.#context.restarts.count, ...this.#members.map(of)].join('|')
  }
}
