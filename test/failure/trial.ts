import { deepEqual } from 'node:assert/strict'
import { mkdtempSync } from 'node:fs'
import { rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { type Queue, type QueueOptions, type RedisOptions, Sluice } from '../../src/index.ts'
import { type StartRedisOptions, startRedis, type TestRedis } from '../../src/testing/redis-server.ts'
import { type CheckerOptions, checkHistory, describeViolations, type Violation } from '../support/checker.ts'
import {
  type HistoryEvent,
  HistoryRecorder,
  type JobState,
  readHistory,
  type SubmittedJob,
} from '../support/history.ts'
import { dumpKeyspace } from '../support/keyspace.ts'
import { stopAll } from '../support/stop-all.ts'
import { TcpProxy } from '../support/tcp-proxy.ts'
import { until } from '../support/until.ts'
import { Upstream } from '../support/upstream.ts'
import type { Child } from './child.ts'
import { Producer } from './producer.ts'
import type { ProducerResult, ProducerSettings } from './producer-process.ts'
import { Worker } from './worker.ts'
import type { Payload, WorkerSettings } from './worker-process.ts'

/** Several servers that are one store: sentinels and their servers, or a Cluster. */
interface Topology {
  readonly redis: RedisOptions['redis']
  /** The servers that have the data now. */
  masters(): Promise<readonly TestRedis[]>
  stop(): Promise<void>
}

export interface TrialOptions {
  redis?: StartRedisOptions
  /** Instead of one server. Stopped with the trial. */
  topology?: Topology
  durability?: RedisOptions['durability']
  /** Workers and producers reach Redis through a proxy; the test itself never does. */
  proxy?: boolean
  /** Workers call an upstream in every job. */
  upstream?: boolean
  /** Processes write down what they do. @default true */
  history?: boolean
  queue?: QueueOptions
}

const QUEUE = 'calls'
const HOLDS_JOBS = /:(lane|front|ring|claim|ready):|:(leases|delayed|aside|parked|unparking)$/
const DEFAULT_LEASE_MS = 15_000
/** What a busy machine with two cores may add between a claim and the start of its handler. */
const TOLERANCE_MS = 400
/** Everything ends this long after it was stored and the last fault was over; leases of the lost come on top. */
const LIVENESS_MS = 8_000
/** So many states of jobs are read at once: of all of them the last would wait for longer than a command may take, and reject. */
const READ_AT_ONCE = 1_000

/** One test: a Redis, processes that work on it, the faults that hit them, and the history of it all. */
export class Trial {
  readonly proxy: TcpProxy | undefined
  readonly upstream: Upstream | undefined
  readonly queue: Queue
  readonly #options: TrialOptions
  readonly #folder: string
  readonly #sluice: Sluice
  readonly #redis: TestRedis | undefined
  readonly #recorder: HistoryRecorder
  readonly #children: Child<unknown>[] = []
  #stopped: Promise<void> | undefined
  #workers = 0
  #producers = 0

  private constructor(
    options: TrialOptions,
    parts: { redis: TestRedis | undefined; proxy: TcpProxy | undefined; upstream: Upstream | undefined },
  ) {
    this.#options = options
    this.#redis = parts.redis
    this.proxy = parts.proxy
    this.upstream = parts.upstream
    const target = options.topology?.redis ?? this.redis.url
    this.#sluice = new Sluice({ redis: target, ...(options.durability && { durability: options.durability }) })
    this.queue = this.#sluice.queue(QUEUE, options.queue ?? {})
    // Last: what throws above leaves no folder behind.
    this.#folder = mkdtempSync(join(tmpdir(), 'sluice-history-'))
    this.#recorder = new HistoryRecorder(this.#folder, 'test')
  }

  /** When it cannot start, it ends what it has started, and the topology. */
  static async start(options: TrialOptions = {}): Promise<Trial> {
    const { topology } = options
    const stops: (() => Promise<void> | undefined)[] = [() => topology?.stop()]
    try {
      const redis = topology ? undefined : await startRedis(options.redis)
      stops.push(() => redis?.stop())
      const proxy = options.proxy && redis ? await TcpProxy.start({ port: redis.port }) : undefined
      stops.push(() => proxy?.close())
      const upstream = options.upstream ? await Upstream.start() : undefined
      stops.push(() => upstream?.stop())
      return new Trial(options, { redis, proxy, upstream })
    } catch (error) {
      await Promise.all(stops.map((stop) => stop()))
      throw error
    }
  }

  /** The one server. */
  get redis(): TestRedis {
    if (!this.#redis) throw new Error('this trial runs on more than one server')
    return this.#redis
  }

  /** Once, however often it is asked for. */
  stop(): Promise<void> {
    this.#stopped ??= this.#stop()
    return this.#stopped
  }

  async #stop(): Promise<void> {
    await stopAll(
      () => this.#children.map((child) => child.end()),
      // First, so that closing what a test left in a broken state does not wait for a server that is gone.
      () => [this.#sluice.close()],
      () => [this.proxy?.close(), this.upstream?.stop()],
      () => [this.#redis?.stop(), this.#options.topology?.stop()],
      () => [this.#forget()],
    )
  }

  async #forget(): Promise<void> {
    this.#recorder.close()
    await rm(this.#folder, { recursive: true, force: true })
  }

  /** Starts a worker and waits until it serves. */
  async worker(settings: Partial<WorkerSettings> = {}): Promise<Worker> {
    const name = `worker-${++this.#workers}`
    const worker = new Worker(name, {
      ...this.#common(name),
      concurrency: 10,
      mode: 'process',
      hangs: false,
      goesFirst: false,
      ...(this.upstream && { upstreamPort: this.upstream.port }),
      ...settings,
    } satisfies WorkerSettings)
    this.#children.push(worker)
    await worker.heard((messages) => messages.some(({ is }) => is === 'ready'))
    return worker
  }

  /** Starts a producer; what it did is known when it has ended. */
  producer(settings: Partial<ProducerSettings> & { count: number }): Producer {
    const name = `producer-${++this.#producers}`
    const producer = new Producer({
      ...this.#common(name),
      prefix: name,
      chunk: 50,
      tenants: ['a', 'b', 'c'],
      ids: 'given',
      everyMs: 0,
      copies: 1,
      holdMs: 0,
      mixed: false,
      ordered: true,
      ...settings,
    } satisfies ProducerSettings)
    this.#children.push(producer)
    return producer
  }

  /** A steady stream of all sorts of jobs until its `finish`, less than two workers can do. */
  stream(settings: Partial<ProducerSettings> = {}): Producer {
    return this.producer({ count: 1_000_000, chunk: 10, everyMs: 40, holdMs: 20, mixed: true, ...settings })
  }

  /** Submits and waits until all is stored. */
  async submitted(settings: Partial<ProducerSettings> & { count: number }): Promise<ProducerResult> {
    return this.producer(settings).result()
  }

  /** Writes a fault into the history: what it excuses is excused from now until `end`. */
  fault(fault: string, worker?: Worker): { end(): void } {
    const named = { fault, ...(worker && { worker: worker.name }) }
    this.#recorder.record({ kind: 'nemesis', phase: 'begin', ...named })
    return { end: () => this.#recorder.record({ kind: 'nemesis', phase: 'end', ...named }) }
  }

  /** Waits until nothing is waiting, delayed or running. */
  async drained(timeoutMs = 60_000): Promise<void> {
    const left = async () => {
      const { waiting, delayed, running } = await this.queue.counts()
      return waiting + delayed + running
    }
    await until(async () => (await left()) === 0, { what: 'no job is left in the queue', timeoutMs })
  }

  /** Drains, completes the history by what the queue and the upstream say, and checks it. */
  async expectPromisesKept(options: Partial<CheckerOptions> = {}): Promise<HistoryEvent[]> {
    const { history, violations } = await this.check(options)
    if (violations.length > 0) throw new Error(describeViolations(violations))
    return history
  }

  /** The same for whoever judges by itself. */
  async check(
    options: Partial<CheckerOptions> = {},
  ): Promise<{ history: HistoryEvent[]; violations: readonly Violation[] }> {
    await this.drained()
    await this.#recordUpstream()
    await this.#recordFinals()
    const history = readHistory(this.#folder)
    const violations = checkHistory(history, {
      leaseMs: this.#options.queue?.leaseMs ?? DEFAULT_LEASE_MS,
      toleranceMs: TOLERANCE_MS,
      clockToleranceMs: 5,
      livenessMs: LIVENESS_MS,
      ...options,
    })
    deepEqual(await this.#leftovers(), [], 'keys that hold jobs are left')
    return { history, violations }
  }

  /** What the processes have written down so far. */
  history(): HistoryEvent[] {
    return readHistory(this.#folder)
  }

  #common(name: string) {
    return {
      name,
      redis: this.#options.topology?.redis ?? this.proxy?.url ?? this.redis.url,
      ...(this.#options.durability && { durability: this.#options.durability }),
      queue: QUEUE,
      options: this.#options.queue ?? {},
      ...(this.#options.history !== false && { historyFolder: this.#folder }),
    }
  }

  async #recordUpstream(): Promise<void> {
    const arrivals = (await this.upstream?.arrivals()) ?? []
    for (const { at, until, job, tenant, fence } of arrivals) {
      this.#recorder.record({ kind: 'effect', job, tenant, fence, until }, at)
    }
  }

  /** The queue says what became of jobs with an id of their own; of the others, only dead letters are known by name. */
  async #recordFinals(): Promise<void> {
    const jobs = new Map<string, SubmittedJob>()
    const done = new Set<string>()
    for (const event of this.history()) {
      if (event.kind === 'submit' && event.phase === 'invoke') for (const job of event.jobs) jobs.set(job.job, job)
      if (event.kind === 'end' && event.result === 'succeeded') done.add(event.job)
    }
    const dead = await this.#deadNames()
    const stateOf = async ({ job, id, tenant }: SubmittedJob): Promise<JobState> => {
      if (id !== undefined) return (await this.queue.job(id, { tenant }))?.state ?? 'unknown'
      if (dead.has(job)) return 'failed'
      return done.has(job) ? 'succeeded' : 'unknown'
    }
    const all = [...jobs.values()]
    for (let from = 0; from < all.length; from += READ_AT_ONCE) {
      const some = all.slice(from, from + READ_AT_ONCE)
      const states = await Promise.all(some.map(async (job) => ({ job: job.job, state: await stateOf(job) })))
      for (const { job, state } of states) this.#recorder.record({ kind: 'final', job, state })
    }
    this.#recorder.record({ kind: 'counts', counts: await this.queue.counts() })
  }

  /** Keys that hold jobs or leases of them; a drained queue has none. */
  async #leftovers(): Promise<string[]> {
    const masters = (await this.#options.topology?.masters()) ?? [this.redis]
    const keyspaces = await Promise.all(masters.map((master) => dumpKeyspace(master.client())))
    return keyspaces.flatMap((keyspace) => Object.keys(keyspace)).filter((key) => HOLDS_JOBS.test(key))
  }

  async #deadNames(): Promise<Set<string>> {
    const names = new Set<string>()
    let cursor: string | undefined
    do {
      const page = await this.queue.deadLetters.list({ cursor, count: 500 })
      for (const { payload } of page.letters) names.add((payload as Payload).name)
      cursor = page.cursor
    } while (cursor !== undefined)
    return names
  }
}
