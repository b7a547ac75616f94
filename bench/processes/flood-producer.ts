import { setImmediate as turn } from 'node:timers/promises'
import { meterScripts } from '../script-cpu.ts'
import { sluiceSide } from '../sides/sluice.ts'
import { type BenchJob, tenantJobs } from '../workload.ts'
import { parentPort } from './child.ts'
import type { FromFloodProducer, ToFloodProducer } from './messages.ts'

/** Submits a stream of jobs for one tenant, as fast as it can, and watches its own memory. */
const [redisPath, metered] = process.argv.slice(2) as [redisPath: string, metered?: 'metered']
if (metered) meterScripts()
const parent = parentPort<ToFloodProducer, FromFloodProducer>()
const side = sluiceSide(redisPath)
const WARM_UP_JOBS = 1_000
const WATCHED_EVERY = 10_000

parent.onMessage(({ floodJobs }) => {
  flood(floodJobs).catch((error: unknown) => {
    console.error(error)
    process.exit(1)
  })
})
parent.send({ kind: 'ready' })

async function flood(floodJobs: number): Promise<void> {
  let mostBytes = 0

  async function* stream(): AsyncGenerator<BenchJob> {
    let yielded = 0
    for (const job of tenantJobs('flood', floodJobs)) {
      yield job
      yielded++
      if (yielded === floodJobs / 4) parent.send({ kind: 'flooding' })
      if (yielded % WATCHED_EVERY > 0) continue
      mostBytes = Math.max(mostBytes, process.memoryUsage.rss())
      // What a stream read from a file or a database does, too.
      await turn()
    }
  }

  // Connected and warm before the count of bytes begins.
  await side.submit(tenantJobs('flood', WARM_UP_JOBS, floodJobs))
  const bytesBefore = process.memoryUsage.rss()
  const startedAt = performance.now()
  await side.submit(stream())
  const seconds = (performance.now() - startedAt) / 1_000
  parent.send({ kind: 'submitted', seconds, growthMegabytes: (mostBytes - bytesBefore) / 1_048_576 })
}
