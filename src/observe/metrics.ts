import { monitorEventLoopDelay } from 'node:perf_hooks'
import { Counter, Gauge, Histogram, Registry } from 'prom-client'
import type { CongestionSummary } from '../engine/congestion-control.ts'
import type { LimitStatus } from '../engine/limit-status.ts'
import { insideOf, type Queue } from '../engine/queue.ts'
import { type Refusal, refusals } from '../engine/queue-figures.ts'
import type { Store } from '../sluice.ts'
import type { Histogram as KeptHistogram } from '../store/histogram.ts'
import { levels } from '../store/names.ts'
import { type NextDue, readNextDue } from '../store/next-due.ts'
import { type LimitCount, type QueueCounts, readAllCounts } from '../store/scripts/read-counts.ts'
import { numberIn, type ServerInfo } from '../store/server-info.ts'
import { readServerInfos } from '../store/server-questions.ts'
import { countTenants, type TenantCounts } from '../store/tenant-tokens.ts'
import { CongestionMetrics } from './congestion-metrics.ts'
import { ExposedHistogram } from './exposed-histogram.ts'
import { LimitMetrics } from './limit-metrics.ts'

/** Counts of a queue, by the name of the metric. They are kept in Redis: each process says the same of them. */
const countsOfQueue = {
  sluice_jobs_submitted_total: ['submitted', 'Jobs that were taken in.'],
  sluice_jobs_claimed_total: ['claimed', 'Jobs that workers were given, those that were given back unrun included.'],
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
  sluice_tenants_unparked_total: ['unparked', 'Times a parked tenant came back in line.'],
  sluice_jobs_promoted_total: ['promoted', 'Delayed jobs that fell due and went back in line.'],
  sluice_dead_letters_expired_total: ['deadLettersExpired', 'Dead letters that were kept no longer.'],
  sluice_dead_letters_retried_total: ['deadLettersRetried', 'Dead letters that were put back in line.'],
  sluice_dead_letters_discarded_total: ['deadLettersDiscarded', 'Dead letters that were discarded.'],
  sluice_schedule_ticks_total: ['ticks', 'Ticks of schedules that got a job.'],
  sluice_schedule_ticks_missed_total: ['ticksMissed', 'Ticks of schedules that got no job.'],
  sluice_audit_rounds_total: ['audits', 'Rounds of the repeating audit over the whole queue.'],
} as const satisfies Record<string, readonly [keyof QueueCounts, string]>

const requestSeconds = [0.001, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10]

/** All that can be asked for: the tenants with most waiting jobs are not always those that have longest to wait. */
const TENANTS_ASKED_FOR = 128

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
  readonly ofLimits: readonly LimitCount[]
  readonly congestion: CongestionSummary
  readonly backoffs: KeptHistogram
  readonly repaired: ReadonlyMap<string, number>
  readonly nextDue: NextDue & { readonly schedule: number | undefined }
  readonly refused: Readonly<Record<Refusal, number>>
  readonly deadLetters: number
}

/** What only the server of this process knows. */
export interface ServerFigures {
  readonly openStreams: number
  readonly connections: number
}

/** What Prometheus scrapes. Labels are queues, types, limits, routes and the largest tenants: all of them few. */
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
  readonly #nextDue = this.#gauge(
    'sluice_next_due_timestamp_seconds',
    'When the first delayed job, parked tenant or schedule is due, in seconds since 1970; absent when none is.',
    ['queue', 'what'],
  )
  readonly #refused = new Counter({
    name: 'sluice_submits_rejected_total',
    help: 'Submits that this process has refused, by reason.',
    labelNames: ['queue', 'reason'],
    registers: [this.#registry],
  })
  readonly #repaired = new Counter({
    name: 'sluice_audit_differences_total',
    help: 'What audits have found and put right, by kind.',
    labelNames: ['queue', 'kind'],
    registers: [this.#registry],
  })
  readonly #limits = new LimitMetrics(this.#registry)
  readonly #congestion = new CongestionMetrics(this.#registry)
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
    this.#exposeHistograms()
    this.#loopDelay.enable()
  }

  /** They are kept where things happen, and read when somebody asks. */
  #exposeHistograms(): void {
    const ofQueues = (read: (queue: Queue) => Iterable<readonly [Record<string, string>, KeptHistogram]>) => () =>
      [...this.#queues.values()].flatMap((queue) =>
        [...read(queue)].map(([labels, histogram]) => [{ queue: queue.name, ...labels }, histogram] as const),
      )
    new ExposedHistogram(
      this.#registry,
      {
        name: 'sluice_job_wait_seconds',
        help: 'From when a job was submitted, or its delay was over, until its first run began in this process.',
      },
      ofQueues((queue) => levels.map((level) => [{ level }, insideOf(queue).figures.waits[level]])),
    )
    new ExposedHistogram(
      this.#registry,
      { name: 'sluice_job_run_seconds', help: 'How long handlers of this process took, by how the run ended.' },
      ofQueues(function* (queue) {
        for (const [type, times] of insideOf(queue).figures.runs) {
          for (const [outcome, histogram] of Object.entries(times)) yield [{ type, outcome }, histogram] as const
        }
      }),
    )
    new ExposedHistogram(
      this.#registry,
      { name: 'sluice_claim_jobs', help: 'Jobs that a claim of this process brought.' },
      ofQueues((queue) => [[{}, insideOf(queue).figures.claims]]),
    )
    new ExposedHistogram(
      this.#registry,
      {
        name: 'sluice_script_duration_seconds',
        help: 'From when this process called a script until it had read the answer.',
      },
      () => [...(this.#store.redis.scriptTimes?.byScript ?? [])].map(([script, times]) => [{ script }, times] as const),
    )
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
      readServerInfos(this.#store.redis, 'memory').then(fullest),
      ...[...this.#queues.values()].map((queue) => this.#read(queue)),
    ])
    // In one go, without a pause: another scrape that is under way sees all of it or none.
    for (const counter of this.#totals.values()) counter.reset()
    this.#refused.reset()
    this.#repaired.reset()
    this.#congestion.reset()
    this.#nextDue.reset()
    this.#limits.reset()
    for (const reading of readings) this.#write(reading)
    this.#redisUsed.set(memory.used)
    this.#redisLimit.set(memory.limit)
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
    const { redis } = this.#store
    const { name } = queue
    const { figures, registration, requests } = insideOf(queue)
    const { keys } = requests
    await registration.readable()
    const [counted, limits, tenants, congestion, due, schedules, letters] = await Promise.all([
      readAllCounts(requests),
      queue.limits.list(),
      countTenants(redis, keys),
      queue.congestion.summary({ limit: TENANTS_ASKED_FOR }),
      readNextDue(redis, keys),
      queue.schedules.list({ limit: 1 }),
      queue.deadLetters.list({ count: 1 }),
    ])
    const nextDue = { ...due, schedule: schedules.nextAt }
    const { refused } = figures
    return { queue: name, ...counted, limits, tenants, congestion, nextDue, refused, deadLetters: letters.total }
  }

  #write(reading: Reading): void {
    const { queue, counts, tenants, limits, ofLimits, nextDue, refused, deadLetters } = reading
    this.#deadLetters.set({ queue }, deadLetters)
    for (const state of ['waiting', 'running', 'delayed'] as const) this.#jobs.set({ queue, state }, counts[state])
    for (const [name, [count]] of Object.entries(countsOfQueue)) this.#totals.get(name)?.inc({ queue }, counts[count])
    for (const level of levels) {
      this.#tenants.set({ queue, level, state: 'ready' }, tenants.ready[level])
    }
    for (const state of ['parked', 'paused'] as const) {
      this.#tenants.set({ queue, level: 'all', state }, tenants[state])
    }
    for (const what of ['delayed', 'parked', 'schedule'] as const) {
      const due = nextDue[what]
      if (due !== undefined) this.#nextDue.set({ queue, what }, due / 1000)
    }
    for (const [kind, count] of reading.repaired) this.#repaired.inc({ queue, kind }, count)
    for (const reason of refusals) this.#refused.inc({ queue, reason }, refused[reason])
    this.#limits.write(queue, limits, ofLimits)
    this.#congestion.write(queue, { summary: reading.congestion, counts, backoffs: reading.backoffs })
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

/** Of the nodes of a Cluster the one with the largest part of its memory in use: it is the first to refuse. */
function fullest(infos: readonly ServerInfo[]): { used: number; limit: number } {
  const nodes = infos.map((info) => ({ used: numberIn(info, 'used_memory'), limit: numberIn(info, 'maxmemory') }))
  const share = ({ used, limit }: { used: number; limit: number }) => (limit > 0 ? used / limit : used / 1e18)
  return nodes.reduce((a, b) => (share(b) > share(a) ? b : a))
}
