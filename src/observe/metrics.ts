import { monitorEventLoopDelay } from 'node:perf_hooks'
import { Counter, Gauge, Histogram, Registry } from 'prom-client'
import type { LimitStatus } from '../engine/limit-control.ts'
import type { Queue } from '../engine/queue.ts'
import type { Store } from '../sluice.ts'
import { queueKeys } from '../store/keys.ts'
import type { QueueCounts } from '../store/scripts/read-counts.ts'
import { countTenants, type TenantCounts } from '../store/tenant-tokens.ts'

/** Counts of a queue, by the name of the metric. They are kept in Redis: each process says the same of them. */
const countsOfQueue = {
  sluice_jobs_submitted_total: ['submitted', 'Jobs that were taken in.'],
  sluice_jobs_succeeded_total: ['succeeded', 'Jobs that ended well.'],
  sluice_jobs_failed_total: ['failed', 'Jobs that became dead letters.'],
  sluice_jobs_canceled_total: ['canceled', 'Jobs that were cancelled.'],
  sluice_jobs_retried_total: ['retried', 'Runs that failed and are tried again.'],
  sluice_jobs_throttled_total: ['throttled', 'Jobs that an upstream pushed back.'],
  sluice_jobs_stalled_total: ['stalled', 'Jobs whose lease ran out.'],
  sluice_jobs_returned_total: ['returned', 'Jobs given back because their grant was stale when they were to start.'],
  sluice_jobs_released_total: ['released', 'Jobs given back unrun, by a worker that shut down.'],
  sluice_jobs_unknown_type_total: ['unknownType', 'Jobs given back by a worker that does not know their type.'],
  sluice_tenants_parked_total: ['parked', 'Times a limit parked a tenant.'],
  sluice_dead_letters_expired_total: ['deadLettersExpired', 'Dead letters that were kept no longer.'],
  sluice_dead_letters_retried_total: ['deadLettersRetried', 'Dead letters that were put back in line.'],
  sluice_dead_letters_discarded_total: ['deadLettersDiscarded', 'Dead letters that were discarded.'],
} as const satisfies Record<string, readonly [keyof QueueCounts, string]>

const requestSeconds = [0.001, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10]

/** How often the event loop is looked at: often enough to meet what holds it up, and cheap. */
const LOOP_SAMPLE_MS = 10

/** One request that the server has answered. */
export interface AnsweredRequest {
  readonly method: string
  /** As it was declared, `/v1/queues/:queue`; `none` where no route was met. */
  readonly route: string
  readonly status: number
  readonly seconds: number
}

interface Reading {
  readonly queue: string
  readonly counts: QueueCounts
  readonly tenants: TenantCounts
  readonly limits: readonly LimitStatus[]
  readonly deadLetters: number
}

/** What only the server of this process knows. */
export interface ServerFigures {
  readonly openStreams: number
  readonly connections: number
}

/** What Prometheus scrapes. Labels are queues, limits of queues and levels, and routes: all of them few. */
export class Metrics {
  readonly #queues: ReadonlyMap<string, Queue>
  readonly #store: Store
  readonly #registry = new Registry()
  readonly #loopDelay = monitorEventLoopDelay({ resolution: LOOP_SAMPLE_MS })
  readonly #totals = new Map<string, Counter>()
  readonly #jobs = this.#gauge('sluice_jobs', 'Jobs by where they are.', ['queue', 'state'])
  readonly #tenants = this.#gauge('sluice_tenants', 'Tenants that have work or are paused, by level and state.', [
    'queue',
    'level',
    'state',
  ])
  readonly #limitRate = this.#gauge(
    'sluice_limit_rate_per_second',
    'What a bucket grants at present when it is always asked.',
    ['queue', 'scope', 'limit'],
  )
  readonly #limitRemaining = this.#gauge('sluice_limit_remaining_permits', 'What a limit could grant now.', [
    'queue',
    'scope',
    'limit',
  ])
  readonly #limitUsed = this.#gauge('sluice_limit_used_permits', 'What of a limit is used now.', [
    'queue',
    'scope',
    'limit',
  ])
  readonly #limitClosed = this.#gauge(
    'sluice_limit_closed_until_seconds',
    'Until when a limit grants nothing, in seconds since 1970; 0 while it grants.',
    ['queue', 'scope', 'limit'],
  )
  readonly #loopLag = this.#gauge(
    'sluice_process_event_loop_lag_seconds',
    'By how much timers of this process were late since the last scrape.',
    ['quantile'],
  )
  readonly #deadLetters = this.#gauge('sluice_dead_letters', 'Dead letters that are kept.', ['queue'])
  readonly #redisUsed = this.#gauge('sluice_redis_memory_used_bytes', 'Memory that Redis uses.', [])
  readonly #redisLimit = this.#gauge(
    'sluice_redis_memory_limit_bytes',
    'Memory that Redis may use (maxmemory); 0 for no limit.',
    [],
  )
  readonly #connections = this.#gauge('sluice_http_connections', 'Connections to the server of this process.', [])
  readonly #streams = this.#gauge('sluice_http_open_streams', 'Streams of events that are open in this process.', [])
  readonly #requests = new Histogram({
    name: 'sluice_http_request_duration_seconds',
    help: 'Time from the first byte of a request to the last of its answer, streams included.',
    labelNames: ['method', 'route', 'status'],
    buckets: requestSeconds,
    registers: [this.#registry],
  })

  constructor(parts: { queues: ReadonlyMap<string, Queue>; store: Store }) {
    this.#queues = parts.queues
    this.#store = parts.store
    for (const [name, [, help]] of Object.entries(countsOfQueue)) {
      this.#totals.set(name, new Counter({ name, help, labelNames: ['queue'], registers: [this.#registry] }))
    }
    this.#loopDelay.enable()
  }

  get contentType(): string {
    return this.#registry.contentType
  }

  /** The names of all metrics, as docs/metrics.md lists them. */
  get names(): string[] {
    return this.#registry.getMetricsAsArray().map(({ name }) => name)
  }

  observeRequest({ method, route, status, seconds }: AnsweredRequest): void {
    this.#requests.observe({ method, route, status: String(status) }, seconds)
  }

  /** Reads all queues anew, and answers the text of an exposition. */
  async expose(server: ServerFigures): Promise<string> {
    const [memory, ...readings] = await Promise.all([
      this.#store.redis.call('INFO', 'memory').then(String),
      ...[...this.#queues.values()].map((queue) => this.#read(queue)),
    ])
    // In one go, without a pause: another scrape that is under way sees all of it or none.
    for (const counter of this.#totals.values()) counter.reset()
    for (const gauge of [this.#limitRate, this.#limitRemaining, this.#limitUsed, this.#limitClosed]) gauge.reset()
    for (const reading of readings) this.#write(reading)
    this.#redisUsed.set(figureIn(memory, 'used_memory'))
    this.#redisLimit.set(figureIn(memory, 'maxmemory'))
    this.#connections.set(server.connections)
    this.#streams.set(server.openStreams)
    this.#writeLoopLag()
    return this.#registry.metrics()
  }

  close(): void {
    this.#loopDelay.disable()
  }

  #gauge<Label extends string>(name: string, help: string, labelNames: readonly Label[]): Gauge<Label> {
    return new Gauge({ name, help, labelNames, registers: [this.#registry] })
  }

  async #read(queue: Queue): Promise<Reading> {
    const { redis, prefix } = this.#store
    const [counts, limits, tenants, letters] = await Promise.all([
      queue.counts(),
      queue.limits.list(),
      countTenants(redis, queueKeys(prefix, queue.name, '')),
      queue.deadLetters.list({ count: 1 }),
    ])
    return { queue: queue.name, counts, limits, tenants, deadLetters: letters.total }
  }

  #write({ queue, counts, tenants, limits, deadLetters }: Reading): void {
    this.#deadLetters.set({ queue }, deadLetters)
    for (const state of ['waiting', 'running', 'delayed'] as const) this.#jobs.set({ queue, state }, counts[state])
    for (const [name, [count]] of Object.entries(countsOfQueue)) this.#totals.get(name)?.inc({ queue }, counts[count])
    for (const level of ['high', 'normal', 'low'] as const) {
      this.#tenants.set({ queue, level, state: 'ready' }, tenants.ready[level])
    }
    for (const state of ['parked', 'paused'] as const) {
      this.#tenants.set({ queue, level: 'all', state }, tenants[state])
    }
    for (const limit of limits) {
      const labels = { queue, scope: limit.scope, limit: limit.name }
      if (limit.effectivePerSecond !== undefined) this.#limitRate.set(labels, limit.effectivePerSecond)
      this.#limitRemaining.set(labels, limit.remaining)
      this.#limitUsed.set(labels, limit.used)
      this.#limitClosed.set(labels, (limit.closedUntil ?? 0) / 1000)
    }
  }

  #writeLoopLag(): void {
    // Node measures from one look to the next: the time between them that was asked for is no lag.
    const lag = (nanoseconds: number) => Math.max(0, nanoseconds / 1e9 - LOOP_SAMPLE_MS / 1000)
    this.#loopLag.set({ quantile: '0.5' }, lag(this.#loopDelay.percentile(50)))
    this.#loopLag.set({ quantile: '0.99' }, lag(this.#loopDelay.percentile(99)))
    this.#loopLag.set({ quantile: '1' }, lag(this.#loopDelay.max))
    this.#loopDelay.reset()
  }
}

/** `used_memory:1048576` of Redis' INFO. */
function figureIn(info: string, name: string): number {
  return Number(new RegExp(`^${name}:(\\d+)`, 'm').exec(info)?.[1] ?? 0)
}
