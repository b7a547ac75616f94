import { Queue, Worker } from 'bullmq'
import { type BenchJob, type CallPayload, chunked } from '../workload.ts'
import type { RunningWorker, Side } from './side.ts'

/**
 * BullMQ at its documented defaults but for two things that make it faster: finished jobs are removed at once (its
 * production guide says to bound them; keeping none is the cheapest), asked for by the worker so that no job carries
 * the wish, and jobs go in by `addBulk`, one chunk after the other (several at once were not faster). It has no tenants
 * in its free edition, so a job's tenant is not stored at all: that only favours it.
 */
export function bullmqSide(
  path: string,
  { queue: name = 'bench', limiter }: { queue?: string; limiter?: { max: number; duration: number } } = {},
): Side {
  const connection = { path, maxRetriesPerRequest: null }
  const queue = new Queue<CallPayload>(name, { connection })
  queue.on('error', () => {})

  return {
    async submit(jobs: Iterable<BenchJob>): Promise<void> {
      for (const chunk of chunked(jobs)) {
        await queue.addBulk(
          chunk.map((job) => ({
            name: 'call',
            data: job.payload,
            ...(job.id === undefined ? {} : { opts: { jobId: job.id } }),
          })),
        )
      }
    },

    async work(options, handler): Promise<RunningWorker> {
      const worker = new Worker<CallPayload>(name, async (job) => handler(job.data, ''), {
        connection,
        removeOnComplete: { count: 0 },
        removeOnFail: { count: 0 },
        ...options,
        ...(limiter === undefined ? {} : { limiter }),
      })
      worker.on('error', () => {})
      await worker.waitUntilReady()
      return { close: () => worker.close() }
    },

    close: () => queue.close(),
  }
}
