import { bullmqSide } from '../sides/bullmq.ts'
import { sluiceSide } from '../sides/sluice.ts'
import { parentPort } from './child.ts'
import type { FromHangingWorker } from './messages.ts'

/** A worker at its defaults whose handler says that it started and never ends: idle without jobs, busy with one. */
const [product, redisPath] = process.argv.slice(2) as [product: string, redisPath: string]
const parent = parentPort<never, FromHangingWorker>()
const side = product === 'sluice' ? sluiceSide(redisPath) : bullmqSide(redisPath)

await side.work({}, () => {
  parent.send({ kind: 'jobStarted' })
  return new Promise<void>(() => {})
})
parent.send({ kind: 'ready' })
