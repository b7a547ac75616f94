import { type Queue, type QueueOptions, Sluice } from '../../src/index.ts'
import type { BenchJob, CallPayload } from '../workload.ts'
import type { RunningWorker, Side } from './side.ts'

/** Sluice at its defaults, but for what a measure is about (its limits, its alpha). */
export function sluiceSide(
  path: string,
  { queue: name = 'bench', ...options }: QueueOptions & { queue?: string } = {},
) {
  const sluice = new Sluice({ redis: { path } })
  const queue = sluice.queue(name, options)

  return {
    counts: () => queue.counts(),
    tenant: (tenant: string) => queue.tenant(tenant),

    async submit(jobs: Iterable<BenchJob> | AsyncIterable<BenchJob>): Promise<void> {
      await queue.submit({ type: 'call', jobs })
    },

    async work(options, handler): Promise<RunningWorker> {
      queue.process<CallPayload>('call', async (job) => handler(job.payload, job.tenant), options)
      return { close: () => queue.close() }
    },

    close: () => sluice.close(),
  } satisfies Side & Pick<Queue, 'counts' | 'tenant'>
}
