import type { ClaimedJob, Queue } from '../../src/index.ts'

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
