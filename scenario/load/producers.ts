import { setTimeout as delay } from 'node:timers/promises'
import type { JobInput, Queue } from '../../src/index.ts'
import { monotonicMs } from './clock.ts'
import type { ScheduledJob } from './ideal-schedule.ts'

/** What a worker process of the scenarios understands. */
interface CallJob {
  readonly tenant: string
  readonly lane?: string
  readonly holdMs: number
}

/** Submits to a queue and remembers when, by the name of the job. */
export class Producer {
  readonly submitted = new Map<string, ScheduledJob>()
  readonly #queue: Queue

  constructor(queue: Queue) {
    this.#queue = queue
  }

  /** Resolves when they are stored. */
  async submit(jobs: Iterable<CallJob>): Promise<void> {
    const at = monotonicMs()
    const inputs: JobInput[] = []
    for (const { holdMs, ...place } of jobs) {
      const name = `${place.tenant}-${this.submitted.size}`
      this.submitted.set(name, { tenant: place.tenant, at })
      inputs.push({ ...place, payload: { name, holdMs } })
    }
    await this.#queue.submit({ type: 'CALL', jobs: inputs })
  }

  /**
   * Submits what `next` makes, again and again, `gapMs` after the last time; the store's answer is not waited for between.
   * Resolves when the signal has come and all is stored.
   */
  async repeat(signal: AbortSignal, gapMs: () => number, next: () => Iterable<CallJob>): Promise<void> {
    const underWay: Promise<void>[] = []
    try {
      for (;;) {
        await delay(gapMs(), undefined, { signal })
        underWay.push(this.submit(next()))
      }
    } catch (error) {
      if (!signal.aborted) throw error
    }
    await Promise.all(underWay)
  }
}
