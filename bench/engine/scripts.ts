import type { Redis } from 'ioredis'
import { type Queue, type QueueOptions, Sluice } from '../../src/index.ts'
import type { BenchContext, Figures, Measure } from '../measure.ts'
import { emptyRedis, redisCpuMicros, scriptCalls } from '../redis-meter.ts'
import { type CallPayload, Effects, interleavedJobs } from '../workload.ts'

const CONCURRENCY = 50
/** So wide that none of them ever says no: what is measured is the cost of asking three limits for every job. */
const THREE_LIMITS: QueueOptions = {
  limits: {
    queue: '50000000/s',
    tenant: '50000000/s',
    crowd: { kind: 'concurrency', max: 1_000_000 },
  },
}

/** One kind of call, again and again, on a queue that `prepare` has filled. */
interface Work {
  /** Of its figures. */
  readonly name: string
  readonly options?: QueueOptions
  prepare?(queue: Queue, count: number): Promise<void>
  /** How many times the unit that its figure is of: jobs, or calls. */
  readonly count: number
  run(queue: Queue, count: number): Promise<void>
}

/**
 * What each script costs Redis, for a workload that is always the same: processor time of the server over one kind of call
 * after the other. For comparing two versions of the scripts on one machine; nothing is promised of single figures.
 */
export const scripts: Measure = {
  name: 'scripts',
  title: 'Redis µs of each script',

  async run({ redis, meter, quick }: BenchContext): Promise<Figures> {
    const rounds = quick ? 3 : 7
    const figures: Record<string, number> = {}
    for (const work of WORKS) {
      const measured: { perUnit: number; perCall: number }[] = []
      // The first is a warm-up: loaded scripts, grown tables.
      for (let round = 0; round <= rounds; round++) {
        const micros = await microsOf(work, redis.path, meter)
        if (round > 0) measured.push(micros)
      }
      // The least: neighbours of a busy machine only ever add, and the work is always the same.
      figures[`scriptMicros${work.name}`] = Math.min(...measured.map(({ perUnit }) => perUnit))
      figures[`scriptMicrosACall${work.name}`] = Math.min(...measured.map(({ perCall }) => perCall))
    }
    return figures
  },
}

async function microsOf(work: Work, path: string, meter: Redis): Promise<{ perUnit: number; perCall: number }> {
  const sluice = new Sluice({ redis: { path } })
  const queue = sluice.queue('scripts', work.options ?? {})
  try {
    // Registered and connected before it counts.
    await queue.counts()
    await work.prepare?.(queue, work.count)
    const [cpuBefore, callsBefore] = [await redisCpuMicros(meter), await scriptCalls(meter)]
    await work.run(queue, work.count)
    const [cpu, calls] = [(await redisCpuMicros(meter)) - cpuBefore, (await scriptCalls(meter)) - callsBefore]
    return { perUnit: cpu / work.count, perCall: cpu / calls }
  } finally {
    await sluice.close()
    await emptyRedis(meter)
  }
}

async function submitMixed(queue: Queue, count: number, tenants = 10): Promise<void> {
  await queue.submit({ type: 'call', jobs: interleavedJobs(count, tenants) })
}

/** All jobs of the queue in this process: claims of fifty, each told with the next. */
async function runAll(queue: Queue, count: number): Promise<void> {
  const effects = new Effects(count)
  queue.process<CallPayload>('call', async ({ payload }) => effects.record(payload), { concurrency: CONCURRENCY })
  await effects.done
  await queue.close()
  effects.assertOncePerJob('scripts')
}

async function times(count: number, call: (index: number) => Promise<unknown>): Promise<void> {
  for (let index = 0; index < count; index++) await call(index)
}

const WORKS: readonly Work[] = [
  { name: 'SubmitAJobOf1000', count: 50_000, run: submitMixed },
  {
    name: 'SubmitAJobOf1000MixedTenants',
    count: 50_000,
    run: (queue, count) => submitMixed(queue, count, 1_000),
  },
  {
    name: 'SubmitOneJob',
    count: 2_000,
    run: (queue, count) =>
      times(count, (index) => queue.submit({ type: 'call', tenant: `t${index % 10}`, payload: index })),
  },
  { name: 'FinishAndClaimAJobOf50', count: 50_000, prepare: submitMixed, run: runAll },
  {
    name: 'FinishAndClaimAJobOf50MixedTenants',
    count: 50_000,
    prepare: (queue, count) => submitMixed(queue, count, 1_000),
    run: runAll,
  },
  { name: 'FinishAndClaimAJobUnder3Limits', count: 50_000, options: THREE_LIMITS, prepare: submitMixed, run: runAll },
  {
    name: 'ClaimAndSucceedOneJob',
    count: 1_000,
    prepare: submitMixed,
    run: (queue, count) =>
      times(count, async () => {
        const [job] = await queue.claim(1)
        await job?.succeed()
      }),
  },
  {
    name: 'ClaimAndRetryOneJob',
    count: 1_000,
    prepare: submitMixed,
    run: (queue, count) =>
      times(count, async () => {
        const [job] = await queue.claim(1)
        await job?.fail(new Error('not yet'))
      }),
  },
  {
    name: 'AdmitOneJob',
    count: 1_000,
    options: { limits: { tenant: '50000000/s' }, leaseMs: 60_000 },
    prepare: submitMixed,
    async run(queue, count) {
      const [job] = await queue.claim(1)
      await times(count, async () => job?.admit())
    },
  },
  { name: 'ReadCounts', count: 2_000, prepare: submitMixed, run: (queue, count) => times(count, () => queue.counts()) },
  {
    name: 'ReadLimits',
    count: 2_000,
    options: THREE_LIMITS,
    prepare: submitMixed,
    run: (queue, count) => times(count, () => queue.limits.list('tenant-3')),
  },
  {
    name: 'ReadTenant',
    count: 2_000,
    prepare: submitMixed,
    run: (queue, count) => times(count, (index) => queue.tenant(`tenant-${index % 10}`).view()),
  },
  {
    name: 'ReadJob',
    count: 2_000,
    prepare: (queue, count) => submitGiven(queue, count),
    run: (queue, count) => times(count, (index) => queue.job(`job-${index}`, { tenant: 'a' })),
  },
  {
    name: 'CancelJob',
    count: 2_000,
    prepare: (queue, count) => submitGiven(queue, count),
    run: (queue, count) => times(count, (index) => queue.cancel(`job-${index}`, { tenant: 'a' })),
  },
  {
    name: 'ChangeLimits',
    count: 1_000,
    options: THREE_LIMITS,
    prepare: submitMixed,
    run: (queue, count) => times(count, (index) => queue.limits.change({ queue: `${50_000_000 + index}/s` })),
  },
  {
    name: 'ActionOfTenJobs',
    count: 500,
    run: (queue, count) =>
      times(count, () => queue.submit({ type: 'call', tenant: 'a', jobs: Array(10).fill({ payload: 1 }) })),
  },
]

async function submitGiven(queue: Queue, count: number): Promise<void> {
  const jobs = Array.from({ length: count }, (_, index) => ({ id: `job-${index}`, tenant: 'a', payload: index }))
  await queue.submit({ type: 'call', jobs })
}
