import { checkOptions, integer, optional } from '../assert.ts'
import { InvalidOptionsError } from '../errors.ts'
import { type CongestionRecord, readCongestionHistory } from '../store/congestion-history.ts'
import type { QueueKeys } from '../store/keys.ts'
import { fromToken, nameRule, problemOfName, toToken } from '../store/names.ts'
import type { Redis } from '../store/redis.ts'
import type { Requests } from '../store/requests.ts'
import {
  type CongestionReply,
  type FoundBacklog,
  type FoundCongestion,
  readCongestion,
} from '../store/scripts/read-congestion.ts'
import { readSettings } from '../store/scripts/read-settings.ts'
import { resetCongestion } from '../store/scripts/reset-congestion.ts'
import { type CongestionLevel, etaMsOf, levelOfBackoff } from './congestion.ts'

/** How far something is behind. Instants in ms since 1970, by the clock of Redis. */
export interface Backlog {
  /** Jobs that could start as soon as it is their turn. */
  readonly waiting: number
  /** Starts a second over the last ten; until it has had work for so long, what its limits let expect. */
  readonly speed: number
  /** False: the speed is an expectation. */
  readonly isMeasured: boolean
  /** How long a job waits now that an upstream pushes back without saying for how long. */
  readonly backoffMs: number
  readonly level: CongestionLevel
  /** Until all that waits has started, at this speed. */
  readonly etaMs: number
  readonly etaAt: number
}

/** How far a tenant is behind, and how often it was held back. */
export interface TenantCongestion extends Backlog {
  readonly tenant: string
  /** Times that a limit parked it or an upstream pushed a job of it back, since the statistics began. */
  readonly throttles: number
  /** To the second; undefined: never. */
  readonly lastThrottledAt: number | undefined
  /** How long the job waits that was pushed back last; undefined: none was. */
  readonly lastBackoffMs: number | undefined
  /** Throttles for each job that has ended since the statistics began; of none so far, all throttles. */
  readonly averageThrottlesPerJob: number
}

export interface CongestionSummary extends Backlog {
  /** Tenants in line or parked; one that is in line on two levels counts twice. */
  readonly activeTenants: number
  /** The tenant that has longest to wait; undefined: nobody waits. */
  readonly worst: { readonly tenant: string; readonly level: CongestionLevel } | undefined
  /** Those that have longest to wait, the longest first. */
  readonly tenants: readonly TenantCongestion[]
}

/** A moment in the past. */
export interface CongestionSnapshot {
  readonly at: number
  readonly waiting: number
  readonly speed: number
  readonly backoffMs: number
  readonly level: CongestionLevel
  readonly etaMs: number
}

export interface TenantSnapshot extends CongestionSnapshot {
  readonly throttles: number
}

export interface QueueSnapshot extends CongestionSnapshot {
  readonly activeTenants: number
}

/** All that are looked at: CANDIDATES of backlogs.lua. */
const MOST_SHOWN = 128
const MOST_SNAPSHOTS = 10_000

const limitOfSummary = { limit: integer({ min: 1, max: MOST_SHOWN, default: 50 }) }
const rulesOfHistory = {
  tenant: optional(nameRule),
  limit: integer({ min: 1, max: MOST_SNAPSHOTS, default: 360 }),
}

/** What backlogs mean in time. Nothing here scans: see decision 26. */
export class CongestionControl {
  readonly #redis: Redis
  readonly #keys: QueueKeys
  readonly #requests: Requests
  readonly #ready: () => Promise<void>
  readonly #readable: () => Promise<void>

  /** Made by the queue. */
  constructor(parts: {
    redis: Redis
    keys: QueueKeys
    requests: Requests
    ready: () => Promise<void>
    /** The same for whoever only looks. */
    readable: () => Promise<void>
  }) {
    this.#redis = parts.redis
    this.#keys = parts.keys
    this.#requests = parts.requests
    this.#ready = parts.ready
    this.#readable = parts.readable
  }

  /** One tenant. One that the queue does not know has nothing waiting. */
  async of(tenant: string): Promise<TenantCongestion> {
    const token = tokenOf(tenant)
    await this.#readable()
    const reply = await readCongestion(this.#requests, { tenant: token })
    return toTenant(reply, reply.tenants[0] as FoundCongestion)
  }

  /** The whole queue, and those of its tenants that have longest to wait. */
  async summary(options: { limit?: number } = {}): Promise<CongestionSummary> {
    const { limit } = checkOptions('congestion.summary', options, limitOfSummary)
    await this.#readable()
    const reply = await readCongestion(this.#requests, { most: limit })
    const tenants = reply.tenants.map((found) => toTenant(reply, found))
    const [worst] = tenants
    return {
      ...toBacklog(reply, reply.queue),
      activeTenants: reply.queue.activeTenants,
      worst: worst && { tenant: worst.tenant, level: worst.level },
      tenants,
    }
  }

  /** What was recorded of a tenant, newest first: moments in which it was among the fifty with most backlog. */
  history(options: { tenant: string; limit?: number }): Promise<TenantSnapshot[]>
  /** What was recorded of the queue, newest first. */
  history(options?: { tenant?: undefined; limit?: number }): Promise<QueueSnapshot[]>
  async history(options: { tenant?: string | undefined; limit?: number } = {}): Promise<unknown[]> {
    const { tenant, limit } = checkOptions('congestion.history', options, rulesOfHistory)
    const token = tenant === undefined ? undefined : tokenOf(tenant)
    await this.#readable()
    const { values } = await readSettings(this.#requests)
    const asked = { tenant: token, limit, keepMs: values.keep_history / 1000 }
    const records = await readCongestionHistory(this.#redis, this.#keys, asked)
    return records.map((record) =>
      tenant === undefined
        ? { ...toSnapshot(record), activeTenants: record.count }
        : { ...toSnapshot(record), throttles: record.count },
    )
  }

  /** Starts a tenant's throttles and averages over; its speed and its history stay. */
  async reset(tenant: string): Promise<void> {
    const token = tokenOf(tenant)
    await this.#ready()
    await resetCongestion(this.#requests, token)
  }
}

function tokenOf(tenant: string): string {
  const problem = problemOfName(tenant)
  if (problem) throw new InvalidOptionsError('congestion', [{ path: 'tenant', problem }])
  return toToken(tenant)
}

function toBacklog({ now, baseBackoffMs }: CongestionReply, found: FoundBacklog): Backlog {
  const { waiting, speed, isMeasured, backoffMs } = found
  const etaMs = etaMsOf(waiting, speed)
  const level = levelOfBackoff(backoffMs, baseBackoffMs)
  return { waiting, speed, isMeasured, backoffMs, level, etaMs, etaAt: Math.round(now) + etaMs }
}

function toTenant(reply: CongestionReply, found: FoundCongestion): TenantCongestion {
  const { tenant, throttles, throttledAt, lastBackoffMs, finished } = found
  return {
    tenant: fromToken(tenant),
    ...toBacklog(reply, found),
    throttles,
    lastThrottledAt: throttledAt === 0 ? undefined : throttledAt,
    lastBackoffMs: lastBackoffMs === 0 ? undefined : lastBackoffMs,
    averageThrottlesPerJob: Math.round((throttles / Math.max(1, finished)) * 100) / 100,
  }
}

function toSnapshot({ at, waiting, speed, backoffMs, baseBackoffMs }: CongestionRecord): CongestionSnapshot {
  const level = levelOfBackoff(backoffMs, baseBackoffMs)
  return { at, waiting, speed, backoffMs, level, etaMs: etaMsOf(waiting, speed) }
}
