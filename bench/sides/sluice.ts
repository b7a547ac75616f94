import type { Redis } from 'ioredis'
import { type QueueOptions, Sluice } from '../../src/index.ts'
import { keyPrefix } from '../../src/store/keys.ts'
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
    async submit(jobs: Iterable<BenchJob> | AsyncIterable<BenchJob>): Promise<void> {
      await queue.submit({ type: 'call', jobs })
    },

    async work(options, handler): Promise<RunningWorker> {
      queue.process<CallPayload>('call', async (job) => handler(job.payload, job.tenant), options)
      return { close: () => queue.close() }
    },

    close: () => sluice.close(),
  } satisfies Side
}

/** What the scripts count of a queue, as they store it: turns, denials that parked a tenant, grants gone stale. */
export async function sluiceStatistic(
  meter: Redis,
  statistic: 'turns' | 'parked' | 'returned',
  queue = 'bench',
): Promise<number> {
  return Number(await meter.hget(`${keyPrefix('sluice', queue)}queue`, statistic))
}
