import { until } from '../support/until.ts'
import { Child } from './child.ts'
import type { WorkerMessage, WorkerSettings } from './worker-process.ts'

/** A worker process of a trial. */
export class Worker extends Child<WorkerMessage> {
  readonly name: string

  constructor(name: string, settings: WorkerSettings) {
    super('worker-process.ts', settings)
    this.name = name
  }

  /** Waits until handlers have started that many jobs, and says which. */
  async started(count: number): Promise<string[]> {
    const messages = await this.heard((heard) => jobsOf(heard, 'started').length >= count)
    return jobsOf(messages, 'started')
  }

  /** Jobs in its hands, as far as it has told. */
  get running(): number {
    return jobsOf(this.messages, 'started').length - jobsOf(this.messages, 'ended').length
  }

  async ended(count: number): Promise<string[]> {
    const messages = await this.heard((heard) => jobsOf(heard, 'ended').length >= count)
    return jobsOf(messages, 'ended')
  }

  freeze(): void {
    this.process.kill('SIGSTOP')
  }

  resume(): void {
    this.process.kill('SIGCONT')
  }
}

/**
 * Waits until these workers have started that many jobs together: which of them gets how many is nobody's promise.
 * Answers one that is in the middle of a job.
 */
export async function busyOne(workers: readonly Worker[], count: number): Promise<Worker> {
  const started = () => workers.reduce((sum, worker) => sum + jobsOf(worker.messages, 'started').length, 0)
  const busy = () => (started() >= count ? workers.find(({ running }) => running > 0) : undefined)
  await until(async () => busy() !== undefined, { what: `a worker is busy after ${count} jobs`, timeoutMs: 30_000 })
  return busy() ?? busyOne(workers, count)
}

function jobsOf(messages: readonly WorkerMessage[], is: 'started' | 'ended'): string[] {
  return messages.flatMap((message) => (message.is === is ? [message.job] : []))
}
