import { meterScripts } from '../script-cpu.ts'
import { sluiceSide } from '../sides/sluice.ts'
import { monotonicMs, parentPort } from './child.ts'
import type { FromFloodWorker, ToFloodWorker } from './messages.ts'

/** Runs what comes, of the flooding tenant and of the small ones, and notes when. */
const CONCURRENCY = 50

const [redisPath, metered] = process.argv.slice(2) as [redisPath: string, metered?: 'metered']
if (metered) meterScripts()
const parent = parentPort<ToFloodWorker, FromFloodWorker>()
const side = sluiceSide(redisPath)
const ranAtMs: number[] = []
let smallLeft = 0
let finishedAtMs = 0

parent.onMessage((message) => {
  if (message.kind === 'expect') smallLeft = message.smallJobs
  else {
    const ran = ranAtMs.filter((at) => at >= message.sinceMs && at <= finishedAtMs).length
    parent.send({ kind: 'report', ran, seconds: (finishedAtMs - message.sinceMs) / 1_000 })
  }
})

await side.work({ concurrency: CONCURRENCY }, (_payload, tenant) => {
  const now = monotonicMs()
  ranAtMs.push(now)
  if (tenant === 'flood' || --smallLeft > 0) return
  finishedAtMs = now
  parent.send({ kind: 'smallTenantsFinished' })
})
parent.send({ kind: 'ready' })
