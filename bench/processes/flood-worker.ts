import { Sluice } from '../../src/index.ts'
import { meterScripts } from '../script-cpu.ts'
import { monotonicMs, parentPort } from './child.ts'
import type { FromFloodWorker, ToFloodWorker } from './messages.ts'

/** Runs what comes, of the flooding tenant and of the small ones, and notes when. */
const CONCURRENCY = 50

const [redisPath, metered] = process.argv.slice(2) as [redisPath: string, metered?: 'metered']
if (metered) meterScripts()
const parent = parentPort<ToFloodWorker, FromFloodWorker>()
const queue = new Sluice({ redis: { path: redisPath } }).queue('bench')
const ranAtMs: number[] = []
const smallTenants = new Map<string, { storedAtMs: number; finishedAtMs: number }>()
const monotonicSince = Date.now() - monotonicMs()
let smallLeft = 0
let finishedAtMs = 0

/** The number of a tenant's first job is the time of Redis in microseconds when it was stored. */
function storedAtMs(id: string): number {
  return Number(id.split(':')[2]) / 1_000 - monotonicSince
}

function ranBetween(from: number, to: number): number {
  return ranAtMs.filter((at) => at >= from && at <= to).length
}

parent.onMessage((message) => {
  if (message.kind === 'expect') {
    smallLeft = message.smallJobs
    return
  }
  const counts = [...smallTenants.values()].map((small) => ranBetween(small.storedAtMs, small.finishedAtMs))
  parent.send({
    kind: 'report',
    ran: ranBetween(message.sinceMs, finishedAtMs),
    ranSinceStored: Math.max(...counts),
    seconds: (finishedAtMs - message.sinceMs) / 1_000,
  })
})

queue.process(
  'call',
  async ({ tenant, id }) => {
    const now = monotonicMs()
    ranAtMs.push(now)
    if (tenant === 'flood') return
    const small = smallTenants.get(tenant)
    if (small) small.finishedAtMs = now
    else smallTenants.set(tenant, { storedAtMs: storedAtMs(id), finishedAtMs: now })
    if (--smallLeft > 0) return
    finishedAtMs = now
    parent.send({ kind: 'smallTenantsFinished' })
  },
  { concurrency: CONCURRENCY },
)
parent.send({ kind: 'ready' })
