import { type QueueOptions, Sluice } from '../../src/index.ts'
import type { BenchJob } from '../workload.ts'
import type { RunningWorker, Side } from './side.ts'

/** Sluice at its defaults, but for what a measure is about (its limits, its alpha). */
export function sluiceSide(
  path: string,
  { queue: name = 'bench', ...options }: QueueOptions & { queue?: string } = {},
) {
  const sluice = new Sluice({ redis: { path } })
  const queue = sluice.queue(name, options)

  return {
    queue,

    async submit(jobs: Iterable<BenchJob> | AsyncIterable<BenchJob>): Promise<void> {
      await queue.submit({ type: 'call', jobs })
    },

    async work(options, handler): Promise<RunningWorker> {
      const worker = queue.process('call', async (job) => handler(job.payload, job.tenant), options)
      return { close: () => worker.close() }
    },

    close: () => sluice.close(),
  } satisfies Side & { queue: unknown }
}
