import type { BenchJob, CallPayload } from '../workload.ts'

type Handler = (payload: CallPayload, tenant: string) => Promise<void> | void

export interface RunningWorker {
  /** Resolves when nothing is in flight any more and every outcome is in the store. */
  close(): Promise<void>
}

/** One queue of one product on the Redis of the measure. */
export interface Side {
  /** Resolves when every job is accepted. */
  submit(jobs: Iterable<BenchJob>): Promise<void>
  /** Without a concurrency the product's own default holds. */
  work(options: { concurrency?: number }, handler: Handler): Promise<RunningWorker>
  /** Ends its connections. The jobs stay. */
  close(): Promise<void>
}
