import { afterAll, afterEach, beforeAll, expect } from 'vitest'
import { type LogEntry, type Queue, type QueueOptions, Sluice, type SluiceOptions } from '../../src/index.ts'
import { startRedis, type TestRedis } from '../../src/testing/redis-server.ts'

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
  sluice(options: Partial<Pick<SluiceOptions, 'log' | 'clock' | 'redis'>> = {}): Sluice {
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

/** The engine of a test file. */
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
