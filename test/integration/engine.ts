import { afterAll, afterEach, beforeAll, expect } from 'vitest'
import {
  type ClaimedJob,
  type LogEntry,
  type Queue,
  type QueueOptions,
  Sluice,
  type SluiceOptions,
} from '../../src/index.ts'
import { startRedis, type TestRedis } from '../../src/testing/redis-server.ts'

/** Long enough for a busy machine: what waits for longer hangs. */
const PATIENCE_MS = 20_000

/**
 * A Redis for the tests of one file, with a prefix of its own for each test. After each test every job of every queue
 * that was used must be in exactly one place, by the counts.
 */
export class Engine {
  readonly log: LogEntry[] = []
  #server: TestRedis | undefined
  #tests = 0
  #open: Sluice[] = []
  #queues = new Map<string, Queue>()

  get server(): TestRedis {
    if (!this.#server) throw new Error('the server has not been started')
    return this.#server
  }

  /** What the keys of this test start with. */
  get prefix(): string {
    return `test-${this.#tests}`
  }

  /** Another process, as far as Redis can tell. */
  sluice(options: Pick<SluiceOptions, 'log' | 'clock'> = {}): Sluice {
    const sluice = new Sluice({
      redis: { path: this.server.path },
      prefix: this.prefix,
      log: (entry) => this.log.push(entry),
      ...options,
    })
    this.#open.push(sluice)
    return sluice
  }

  /** A queue of a process of its own. Called twice, two processes share the queue. */
  queue(options?: QueueOptions, name = 'q'): Queue {
    const queue = this.sluice().queue(name, options)
    this.#queues.set(name, queue)
    return queue
  }

  async start(): Promise<void> {
    this.#server = await startRedis()
  }

  async endTest(): Promise<void> {
    try {
      const auditor = this.sluice()
      for (const name of this.#queues.keys()) {
        await auditCounts(auditor.queue(name))
        const { differences } = await auditor.queue(name).audit({ repair: false })
        expect(differences, `the audit finds nothing in queue ${name}`).toEqual([])
      }
    } finally {
      await Promise.all(this.#open.splice(0).map((sluice) => sluice.close()))
      this.#queues.clear()
      this.log.length = 0
      this.#tests += 1
    }
  }

  async stop(): Promise<void> {
    await this.#server?.stop()
  }
}

export function useEngine(): Engine {
  const engine = new Engine()
  beforeAll(() => engine.start())
  afterEach(() => engine.endTest())
  afterAll(() => engine.stop())
  return engine
}

async function auditCounts(queue: Queue): Promise<void> {
  const { submitted, deadLettersRetried, ...counts } = await queue.counts()
  const places = counts.waiting + counts.delayed + counts.running
  const ends = counts.succeeded + counts.failed + counts.canceled
  expect(places + ends, `every job of queue ${queue.name} is in one place: ${JSON.stringify(counts)}`).toBe(
    submitted + deadLettersRetried,
  )
}

/** Something that happens a number of times. */
export class Countdown {
  readonly reached: Promise<void>
  #left: number
  #reach: () => void = () => {}

  constructor(times: number) {
    this.#left = times
    const { promise, resolve, reject } = withResolvers<void>()
    const timer = setTimeout(() => reject(new Error(`${this.#left} of ${times} are still missing`)), PATIENCE_MS)
    this.#reach = () => {
      clearTimeout(timer)
      resolve()
    }
    this.reached = promise
    // Awaited later, if ever: a test that has failed before must not fail again.
    promise.catch(() => {})
  }

  tick(): void {
    this.#left -= 1
    if (this.#left === 0) this.#reach()
  }
}

export function withResolvers<T>(): {
  promise: Promise<T>
  resolve: (value: T) => void
  reject: (error: unknown) => void
} {
  let resolve: (value: T) => void = () => {}
  let reject: (error: unknown) => void = () => {}
  const promise = new Promise<T>((onResolve, onReject) => {
    resolve = onResolve
    reject = onReject
  })
  return { promise, resolve, reject }
}

/** Asks until the answer is yes. For what announces itself nowhere. */
export async function until(question: () => boolean | Promise<boolean>): Promise<void> {
  const deadline = performance.now() + PATIENCE_MS
  while (!(await question())) {
    if (performance.now() > deadline) throw new Error(`still not so: ${question}`)
    await pause(10)
  }
}

export function pause(ms: number): Promise<void> {
  return new Promise((resolve) => setTimeout(resolve, ms))
}

/** Everything that comes, once nothing more does. */
export async function all<T>(items: AsyncIterable<T>): Promise<T[]> {
  const found: T[] = []
  for await (const item of items) found.push(item)
  return found
}

/** Claims and finishes jobs one by one; answers what `describe` says of each. */
export async function drain(queue: Queue, describe: (job: ClaimedJob) => string, most = 1_000): Promise<string[]> {
  const seen: string[] = []
  while (seen.length < most) {
    const [job] = await queue.claim(1)
    if (!job) break
    seen.push(describe(job))
    await job.succeed()
  }
  return seen
}

export function payloads(count: number): { payload: number }[] {
  return Array.from({ length: count }, (_, index) => ({ payload: index + 1 }))
}
