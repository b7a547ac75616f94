import type { BenchContext, Figures, Measure } from '../measure.ts'
import { Child } from '../processes/child.ts'
import type { FromLimitedWorker, FromUpstream, ToLimitedWorker, ToUpstream } from '../processes/messages.ts'
import { limitedSide, type Product } from '../sides/limited.ts'
import { interleavedJobs, sleep } from '../workload.ts'

type WorkerProcess = Child<ToLimitedWorker, FromLimitedWorker>
type UpstreamProcess = Child<ToUpstream, FromUpstream>

interface Run {
  product: Product
  limitPerSecond: number
  processes: 1 | 4
}

const TENANTS = 10
const WINDOW_MS = 1_000
/** Left out of the utilisation: processes start one after the other. The largest count is of all arrivals. */
const RAMP_MS = 500

/**
 * Runs of one line share their seconds: they take next to no processor, and the quick bench has few. The fast ones
 * have the machine to themselves.
 */
const PHASES: readonly (readonly Run[])[] = [
  [
    { product: 'sluice', limitPerSecond: 30, processes: 1 },
    { product: 'sluice', limitPerSecond: 30, processes: 4 },
    { product: 'sluice', limitPerSecond: 500, processes: 1 },
  ],
  [{ product: 'sluice', limitPerSecond: 500, processes: 4 }],
  [{ product: 'sluice', limitPerSecond: 5_000, processes: 1 }],
  [{ product: 'sluice', limitPerSecond: 5_000, processes: 4 }],
  [
    { product: 'bullmq', limitPerSecond: 500, processes: 1 },
    { product: 'bullmq', limitPerSecond: 500, processes: 4 },
  ],
]

/** What a limited upstream sees: how much of the limit is used, and whether it is ever exceeded, in the same runs. */
export const upstreamLimit: Measure = {
  name: 'upstream-limit',
  title: 'limit as the upstream counts it',

  async run({ redis, quick }: BenchContext): Promise<Figures> {
    const seconds = quick ? 3 : 20
    const upstream: UpstreamProcess = new Child('upstream-recorder.ts')
    const workers: WorkerProcess[] = Array.from({ length: 4 }, () => new Child('limited-worker.ts'))
    try {
      const [{ port }] = await Promise.all([upstream.next('ready'), ...workers.map((worker) => worker.next('ready'))])
      const figures: Figures = {}
      const seen: Record<Product, Observed[]> = { sluice: [], bullmq: [] }
      let channel = 0
      for (const phase of PHASES) {
        const observed = await Promise.all(
          phase.map((run) =>
            observe({ run, seconds, channel: channel++, upstream, upstreamPort: port, workers, redisPath: redis.path }),
          ),
        )
        observed.forEach((result, index) => {
          const { product, limitPerSecond, processes } = phase[index] as Run
          const suffix = `${limitPerSecond}x${processes}${product === 'bullmq' ? 'Bullmq' : ''}`
          figures[`limitUtilisation${suffix}`] = result.utilisation
          figures[`upstreamMaxOverLimit${suffix}`] = result.maxOverLimit
          seen[product].push(result)
        })
      }
      return {
        limitUtilisation: Math.min(...seen.sluice.map(({ utilisation }) => utilisation)),
        upstreamMaxOverLimit: Math.max(...seen.sluice.map(({ maxOverLimit }) => maxOverLimit)),
        limitUtilisationBullmq: Math.min(...seen.bullmq.map(({ utilisation }) => utilisation)),
        upstreamMaxOverLimitBullmq: Math.max(...seen.bullmq.map(({ maxOverLimit }) => maxOverLimit)),
        ...figures,
      }
    } finally {
      await Promise.all([upstream, ...workers].map((child) => child.kill()))
    }
  },
}

interface Observed {
  utilisation: number
  maxOverLimit: number
}

async function observe(options: {
  run: Run
  seconds: number
  channel: number
  upstream: UpstreamProcess
  upstreamPort: number
  workers: readonly WorkerProcess[]
  redisPath: string
}): Promise<Observed> {
  const { run, seconds, channel, upstream, upstreamPort, redisPath } = options
  const { product, limitPerSecond } = run
  const queue = `limited-${channel}`
  // Twice what the limit lets through, so that work never runs out.
  const jobs = interleavedJobs(Math.ceil(limitPerSecond * (seconds + 2) * 2), TENANTS)
  const producer = limitedSide({ product, redisPath, queue, limitPerSecond })
  await producer.submit(jobs)
  await producer.close()

  const workers = options.workers.slice(0, run.processes)
  const isOurs = (message: { channel: number }): boolean => message.channel === channel
  const started = Promise.all(workers.map((worker) => worker.next('started', isOurs)))
  for (const worker of workers) {
    worker.send({ kind: 'start', run: { product, redisPath, queue, limitPerSecond, upstreamPort, channel } })
  }
  await started
  await sleep(RAMP_MS + seconds * 1_000)
  const reported = upstream.next('report', isOurs)
  upstream.send({ kind: 'report', channel })
  const { arrivalsMs, nowMs } = await reported
  const stopped = Promise.all(workers.map((worker) => worker.next('stopped', isOurs)))
  for (const worker of workers) worker.send({ kind: 'stop', channel })
  await stopped

  return {
    utilisation: callsPerSecond(arrivalsMs, nowMs) / limitPerSecond,
    maxOverLimit: maxInSlidingWindow(arrivalsMs) / limitPerSecond,
  }
}

/** Calls a second from the end of the ramp to the end of the run. */
function callsPerSecond(arrivalsMs: readonly number[], untilMs: number): number {
  const fromMs = (arrivalsMs[0] ?? 0) + RAMP_MS
  return (arrivalsMs.filter((at) => at > fromMs).length / (untilMs - fromMs)) * 1_000
}

function maxInSlidingWindow(arrivalsMs: readonly number[]): number {
  let largest = 0
  let oldest = 0
  arrivalsMs.forEach((at, index) => {
    while ((arrivalsMs[oldest] as number) <= at - WINDOW_MS) oldest++
    largest = Math.max(largest, index - oldest + 1)
  })
  return largest
}
