import { setImmediate as turn } from 'node:timers/promises'
import { sluiceSide } from '../sides/sluice.ts'
import { type BenchJob, tenantJobs } from '../workload.ts'
import { monotonicMs, parentPort } from './child.ts'
import type { FromFloodProducer, ToFloodProducer } from './messages.ts'

/** Submits a stream for one tenant and, when a quarter of it is in, a hundred jobs for each of the small tenants. */
const [redisPath] = process.argv.slice(2) as [redisPath: string]
const parent = parentPort<ToFloodProducer, FromFloodProducer>()
const side = sluiceSide(redisPath)

parent.onMessage(({ floodJobs, smallTenants, smallJobs }) => {
  let smallSubmittedAtMs = 0
  let small: Promise<unknown> = Promise.resolve()
  let mostBytes = 0

  function submitSmallTenants(): Promise<unknown> {
    smallSubmittedAtMs = monotonicMs()
    return Promise.all(
      Array.from({ length: smallTenants }, (_, tenant) =>
        side.submit(tenantJobs(`small-${tenant}`, smallJobs, floodJobs + tenant * smallJobs)),
      ),
    )
  }

  async function* stream(): AsyncGenerator<BenchJob> {
    let yielded = 0
    for (const job of tenantJobs('flood', floodJobs)) {
      yield job
      yielded++
      if (yielded % 10_000 === 0) {
        mostBytes = Math.max(mostBytes, process.memoryUsage.rss())
        // What a stream read from a file or a database does, too.
        await turn()
      }
      if (yielded === floodJobs / 4) small = submitSmallTenants()
    }
  }

  async function run(): Promise<void> {
    // Connected and warm before the count of bytes begins.
    await side.submit(tenantJobs('flood', 1_000, floodJobs * 2))
    const bytesBefore = process.memoryUsage.rss()
    const startedAt = performance.now()
    await side.submit(stream())
    const seconds = (performance.now() - startedAt) / 1_000
    await small
    const growthMegabytes = (mostBytes - bytesBefore) / 1_048_576
    parent.send({ kind: 'submitted', seconds, growthMegabytes, smallSubmittedAtMs })
  }

  run().catch((error: unknown) => {
    console.error(error)
    process.exit(1)
  })
})
parent.send({ kind: 'ready' })
