import { deepStrictEqual } from 'node:assert'
import { afterAll, beforeAll, describe, it } from 'vitest'
import { decodeJobs, type LeasedJob } from '../../engine/job.ts'
import { checkQueueOptions, declarationOf, declaredSettings, type QueueOptions } from '../../engine/queue-options.ts'
import type { LimitDefinition } from '../../limits/definition.ts'
import { parseLimit } from '../../limits/definition.ts'
import { queueKeys } from '../../store/keys.ts'
import { levels } from '../../store/names.ts'
import { encodeRecord } from '../../store/record.ts'
import { openRedis, type Redis } from '../../store/redis.ts'
import { Requests } from '../../store/requests.ts'
import { changeTenant } from '../../store/scripts/change-tenant.ts'
import { finishAndClaim } from '../../store/scripts/finish-and-claim.ts'
import { readTenant } from '../../store/scripts/read-tenant.ts'
import { registerQueue } from '../../store/scripts/register-queue.ts'
import { submitJobs } from '../../store/scripts/submit-jobs.ts'
import type { LimitRule } from '../../store/settings.ts'
import { startRedis, type TestRedis } from '../../testing/redis-server.ts'
import { limitsOfTenant } from '../plan-limits.ts'
import { Random } from '../random.ts'
import { type SchedulerLimits, VirtualQueue } from './virtual-queue.ts'
import type { VirtualJob, VirtualTenant } from './virtual-tenant.ts'

const STEPS = 120
// Longer than any limit makes anybody wait, so that the end of a lease is never mistaken for what a limit says.
const LEASE_MS = 1e9
const FIRST_INSTANT = 1_700_000_000_000_000

/** What a run is about. Whatever it leaves open is chosen by chance. */
interface Situation {
  readonly name: string
  readonly tenants?: number
  readonly options?: QueueOptions
  readonly hands?: readonly number[]
  /** Jobs that come together. */
  readonly jobs?: readonly number[]
  /** One tenant is idle for half of the run, and then has a single job again and again. */
  readonly hasSingles?: boolean
  /** The share of tenants with limits of their own. */
  readonly ownLimits?: number
  /** In µs, at most. */
  readonly pauses?: readonly number[]
}

/** Each was made for a mistake that chance alone did not meet: docs/decisions/0036-simulation.md has them. */
const situations: readonly Situation[] = [
  { name: 'anything' },
  {
    name: 'many come back at once, and hands are few',
    tenants: 30,
    options: { limits: { tenant: '5/s' }, quantum: 1 },
    hands: [3, 12, 100],
    jobs: [5],
  },
  {
    name: 'somebody is overdue',
    tenants: 20,
    options: { quantum: 1, alpha: 10_000, maxWaitMs: 200 },
    hands: [1, 3, 12],
    jobs: [1, 2, 30],
  },
  {
    name: 'a strict share is less than one permit',
    tenants: 20,
    options: { limits: { queue: '6/s' }, share: 'strict' },
    jobs: [2],
  },
  {
    name: 'own limits have another jitter than the template',
    tenants: 6,
    options: { limits: { tenant: { kind: 'bucket', limit: 40, windowMs: 1_000, jitterMs: 200 } } },
    ownLimits: 1,
    jobs: [30],
  },
  {
    name: 'windows are about to end',
    tenants: 3,
    options: { limits: { queue: { kind: 'window', limit: 60, windowMs: 200 } } },
    hands: [3, 12],
    pauses: [1, 60_000],
  },
  {
    name: 'slots are few',
    tenants: 6,
    options: { limits: { queue: { kind: 'concurrency', max: 8 }, tenant: { kind: 'concurrency', max: 3 } } },
    jobs: [5, 30],
  },
  {
    name: 'one comes and goes beside others with a backlog',
    tenants: 6,
    options: { limits: {}, quantum: 2, alpha: 0 },
    hands: [1, 3],
    jobs: [30],
    hasSingles: true,
  },
]

interface Running {
  readonly real: LeasedJob
  readonly virtual: VirtualJob
}

let server: TestRedis
let redis: Redis

beforeAll(async () => {
  server = await startRedis()
  redis = openRedis({ redis: { path: server.path } })
})

afterAll(async () => {
  await redis.close()
  await server.stop()
})

/** The scripts and the virtual queue, told the same at the same instants. */
class SideBySide {
  readonly #situation: Situation
  readonly #random: Random
  readonly #requests: Requests
  readonly #virtual: VirtualQueue
  readonly #tenants: VirtualTenant[] = []
  readonly #own = new Map<VirtualTenant, readonly LimitRule[]>()
  readonly #running: Running[] = []
  readonly #options: QueueOptions
  #now = FIRST_INSTANT
  #steps = 0
  /** When the last claim said that the next could bring something. */
  #comeAt: number | undefined

  constructor(seed: number) {
    this.#situation = situations[seed % situations.length] as Situation
    this.#random = new Random(`side by side ${seed}`)
    this.#options = { ...this.#chooseOptions(), ...this.#situation.options }
    const settings = checkQueueOptions('q', this.#options)
    const { values, limits } = declaredSettings(settings)
    const keys = queueKeys(`seed${seed}`, 'q', 'me')
    const declaration = declarationOf(this.#options, settings)
    const register = async () => {
      await registerQueue(redis, keys, declaration, { knewSince: '', nowUs: String(this.#now) })
    }
    this.#requests = new Requests({ client: 'me', redis, keys, register })
    this.#virtual = new VirtualQueue(values, limits as SchedulerLimits)
    const template = limits.tenant as LimitRule[]
    const count = this.#situation.tenants ?? this.#oneOf([1, 3, 8, 90])
    for (let at = 0; at < count; at++) {
      const settings = {
        level: this.#oneOf(['normal', 'normal', 'normal', ...levels] as const),
        weight: this.#oneOf([1, 1, 1, 3, 0.3]),
        basePriority: this.#oneOf([0, 0, 0, -400, 900]),
      }
      const own = this.#random.next() < (this.#situation.ownLimits ?? 0.2) ? [this.#ownLimit(template)] : []
      const tenant = this.#virtual.addTenant(`t${at}`, settings, limitsOfTenant(template, own))
      this.#tenants.push(tenant)
      this.#own.set(tenant, own)
    }
  }

  /** What the run is about, for the message when the two differ. */
  toString(): string {
    return `"${this.#situation.name}", ${this.#tenants.length} tenants under ${JSON.stringify(this.#options)}`
  }

  async prepare(): Promise<void> {
    await submitJobs(this.#requests, [], { nowUs: String(this.#now) })
    for (const tenant of this.#tenants) {
      const { name, weight, basePriority } = tenant
      const own = this.#own.get(tenant) ?? []
      const limits = own.length > 0 ? { limits: Object.fromEntries(own.map((rule) => [rule.name, rule])) } : {}
      await changeTenant(this.#requests, name, { weight, base: basePriority, ...limits }, String(this.#now))
    }
  }

  async step(): Promise<void> {
    this.#steps += 1
    this.#advance()
    if (this.#random.next() < 0.4) await this.#submit()
    else await this.#claim()
  }

  async compareTenants(): Promise<void> {
    for (const tenant of this.#tenants) {
      const real = await readTenant(this.#requests, tenant.name, String(this.#now))
      const found = {
        waiting: real.waiting,
        delayed: real.delayed,
        running: real.running,
        longestWaitMs: real.longestWaitMs,
        fairness: real.fairness[tenant.level],
      }
      deepStrictEqual(
        {
          waiting: tenant.waiting,
          delayed: tenant.delayed,
          running: tenant.running,
          longestWaitMs: tenant.longestWait / 1000,
          fairness: { entitled: this.#virtual.entitledTo(tenant), received: tenant.received },
        },
        found,
        `${tenant.name} at the end`,
      )
    }
  }

  #chooseOptions(): QueueOptions {
    const limits: Record<string, LimitDefinition | Record<string, LimitDefinition>> = {}
    if (this.#random.next() < 0.6) limits.queue = this.#anyLimit()
    if (this.#random.next() < 0.3) limits.second = this.#anyLimit()
    if (this.#random.next() < 0.5) limits.tenant = this.#anyLimit()
    if (this.#random.next() < 0.3) limits.levels = { [this.#oneOf(levels)]: this.#anyLimit() }
    return {
      limits,
      share: this.#random.next() < 0.25 ? 'strict' : 'fair',
      quantum: this.#oneOf([1, 2, 4, 7]),
      alpha: this.#oneOf([0, 0, 10_000, -10_000]),
      maxWaitMs: this.#oneOf([0, 200, 3_000, 60_000]),
    }
  }

  /** In place of the template, with whatever jitter, or beside it. Where none of the name is in the template all have one. */
  #ownLimit(template: readonly LimitRule[]): LimitRule {
    const rule = parseLimit(this.#oneOf(['tenant', 'tenant', 'other']), this.#anyLimit())
    const isJittered = template.some((other) => other.name === rule.name && 'jitter' in other)
    if (!isJittered || !('jitter' in rule)) return rule
    return { ...rule, jitter: this.#oneOf([0, 10_000, 50_000, 400_000]) }
  }

  #anyLimit(): LimitDefinition {
    return this.#oneOf<LimitDefinition>([
      `${1 + this.#below(20)}/s`,
      `${100 + this.#below(900)}/s`,
      { kind: 'bucket', limit: 60, windowMs: 1_000, burst: 1 + this.#below(20) },
      { kind: 'window', limit: 1 + this.#below(30), windowMs: 1_000 + this.#below(3_000) },
      { kind: 'window', limit: 40, windowMs: 86_400_000, timeZone: 'Europe/Berlin' },
      { kind: 'concurrency', max: 1 + this.#below(12) },
    ])
  }

  #advance(): void {
    const isPatient = this.#random.next() < 0.3 && this.#comeAt !== undefined
    if (isPatient) this.#now = Math.max(this.#now, this.#comeAt as number)
    else this.#now += this.#below(this.#oneOf(this.#situation.pauses ?? [1, 2, 5_000, 200_000, 1_500_000]))
  }

  async #submit(): Promise<void> {
    const { jobs = [1, 2, 5, 30], hasSingles = false } = this.#situation
    const choice = hasSingles ? this.#tenants.slice(1) : this.#tenants
    const lines = Array.from({ length: 1 + this.#below(4) }, () => ({
      tenant: this.#oneOf(choice),
      lane: this.#oneOf(['default', 'default', 'other', 'third']),
      count: this.#oneOf(jobs),
    }))
    const [single] = this.#tenants as [VirtualTenant]
    if (hasSingles && this.#steps > STEPS / 2) lines.push({ tenant: single, lane: 'default', count: 1 })
    for (const { tenant, lane, count } of lines) {
      const entries = new Array<string>(count).fill(encodeRecord('0', 'call', '', '', 'null'))
      const line = { tenant: tenant.name, level: tenant.level, lane, basePriority: undefined, entries }
      await submitJobs(this.#requests, [{ ...line, kind: 'fresh', hasCosts: false }], { nowUs: String(this.#now) })
      this.#virtual.submit(tenant, lane, count, this.#now)
    }
  }

  async #claim(): Promise<void> {
    const wanted = this.#oneOf(this.#situation.hands ?? [0, 1, 3, 12, 100, 400])
    const ended = this.#someRunning()
    const reply = await finishAndClaim(this.#requests, {
      wanted,
      levels: levels.join(' '),
      leaseMs: LEASE_MS,
      idleForMs: 1_000,
      hasSuspect: false,
      finished: ended.map(({ job: { real }, retryAfter }) => ({
        fence: real.fence,
        jobKey: real.key,
        place: real.place,
        standing: real.standing,
        finish:
          retryAfter === undefined
            ? { outcome: 'succeeded' }
            : { outcome: 'retry', delayMs: retryAfter / 1000, error: '{"message":"no"}' },
      })),
      nowUs: String(this.#now),
    })
    const ends = ended.map(({ job, retryAfter }) => ({ job: job.virtual, retryAfter }))
    const claimed = this.#virtual.claim(wanted, ends, this.#now)
    const jobs = decodeJobs(reply.fence, reply.jobs, reply.kept)
    const waitMs = reply.waitMs !== undefined && reply.waitMs < LEASE_MS / 2 ? reply.waitMs : undefined
    deepStrictEqual(
      {
        word: claimed.word,
        waitMs: claimed.wait === undefined ? undefined : claimed.wait / 1000,
        jobs: claimed.jobs.map(({ tenant, lane, attempts }) => `${tenant.name} ${lane.name} ${attempts}`),
      },
      {
        word: reply.word,
        waitMs,
        jobs: jobs.map(({ tenantToken, lane, attempt }) => `${tenantToken} ${lane} ${attempt - 1}`),
      },
    )
    for (const [at, real] of jobs.entries()) {
      this.#running.push({ real, virtual: claimed.jobs[at] as VirtualJob })
    }
    this.#comeAt = claimed.wait === undefined ? undefined : this.#now + claimed.wait
  }

  /** Takes away some of what runs, with how it ended. */
  #someRunning(): { job: Running; retryAfter: number | undefined }[] {
    const count = this.#below(Math.min(this.#running.length, 60) + 1)
    return Array.from({ length: count }, () => {
      const [job] = this.#running.splice(this.#below(this.#running.length), 1)
      return { job: job as Running, retryAfter: this.#random.next() < 0.15 ? this.#below(3_000_000) : undefined }
    })
  }

  #below(bound: number): number {
    return Math.floor(this.#random.next() * bound)
  }

  #oneOf<T>(choices: readonly T[]): T {
    return choices[this.#below(choices.length)] as T
  }
}

describe('the virtual queue', () => {
  const seconds = Number(process.env.SLUICE_MODEL_SECONDS ?? 4)

  it(`claims what the scripts claim and waits as long as they say, in random runs for ${seconds} s`, {
    timeout: (seconds + 60) * 1_000,
  }, async () => {
    const end = performance.now() + seconds * 1_000
    const atLeast = 2 * situations.length
    for (let seed = 1; seed <= atLeast || performance.now() < end; seed++) {
      const run = new SideBySide(seed)
      await run.prepare()
      for (let step = 1; step <= STEPS; step++) {
        await run.step().catch((error: Error) => {
          throw new Error(`seed ${seed}, step ${step} of ${run}: ${error.message}`, { cause: error })
        })
      }
      await run.compareTenants()
    }
  })
})
