import { setTimeout as delay } from 'node:timers/promises'
import { type QueueOptions, Sluice } from '../../src/index.ts'
import type { TestRedis } from '../../src/testing/redis-server.ts'
import type { Upstream } from '../../test/support/upstream.ts'
import { judge } from '../judge.ts'
import { percentile } from '../load/percentile.ts'
import { Producer } from '../load/producers.ts'
import { seededRandom } from '../load/random.ts'
import { type Waits, waitsOf } from '../load/waits.ts'
import { ownRedis, ownUpstream, startWorkers } from '../load/workers.ts'
import type { Scenario, ScenarioContext } from '../scenario.ts'

interface Scarcity {
  readonly queue: string
  readonly options: QueueOptions
  /** Of each process. */
  readonly concurrency: number
  readonly holdMs: number
  /** Jobs that a small tenant submits at a time. */
  readonly batch: number
}

const FLOOD = 'flood'
const FLOOD_LANES = 1_000
const SMALL_TENANTS = 9
const SMALL_PER_SECOND = 10
const PROCESSES = 2
/** How long calls go on after the last small job was called: the ideal may serve one of them a slot later. */
const AFTERWARDS_MS = 500
const ASKED_EVERY_MS = 200

/**
 * What there is to share: hands, then a limit. Both give about 125 starts a second, so that a tenant's share is little
 * more than what the small ones want: a flood that got a little more than its own would make their lines grow and grow.
 * The third is for the record (docs/decisions/0029-scenarios.md): a job that comes alone waits for a round of turns, which
 * is one slot for an ideal scheduler and four for the flood of a queue with a quantum of four.
 */
const SCARCITIES: readonly Scarcity[] = [
  { queue: 'hands', options: {}, concurrency: 7, holdMs: 95, batch: 10 },
  { queue: 'limit', options: { limits: { queue: '132/s' } }, concurrency: 25, holdMs: 20, batch: 10 },
  { queue: 'singles', options: { limits: { queue: '132/s' } }, concurrency: 25, holdMs: 20, batch: 1 },
]

export const scenario: Scenario = {
  name: 'flood-and-splitting',
  description: 'a tenant that floods over 1,000 lanes does not delay nine others that submit 10 jobs a second each',

  async run(context) {
    const redis = await ownRedis(context)
    const upstream = await ownUpstream(context)
    const figures: Record<string, number> = {}
    for (const scarcity of SCARCITIES) {
      const waits = await flood(context, scarcity, { redis, upstream })
      for (const [figure, value] of Object.entries(figuresOf(waits))) figures[scarcity.queue + figure] = value
    }
    return judge(figures, { handsP99OverIdeal: { atMost: 1.3 }, limitP99OverIdeal: { atMost: 1.3 } })
  },
}

/** Floods for a while and answers how long the small tenants' jobs waited. */
async function flood(
  context: ScenarioContext,
  { queue: name, options, concurrency, holdMs, batch }: Scarcity,
  { redis, upstream }: { redis: TestRedis; upstream: Upstream },
): Promise<Waits> {
  const { full, log, onEnd, signal } = context
  const seconds = full ? 60 : 12
  log(`${seconds} s of a flood; scarce is: ${name}`)
  const sluice = new Sluice({ redis: redis.url })
  onEnd(() => sluice.close())
  const producer = new Producer(sluice.queue(name, options))
  await upstream.forget()

  const oneForEachLane = () =>
    Array.from({ length: FLOOD_LANES }, (_, lane) => ({ tenant: FLOOD, lane: `lane-${lane}`, holdMs }))
  // More than all hands can do in the whole run.
  for (let round = 0; round < (full ? 100 : 10); round++) await producer.submit(oneForEachLane())
  const workers = await startWorkers(context, {
    count: PROCESSES,
    ...{ redis, upstream, queue: name, options, concurrency },
  })
  const enough = new AbortController()
  const stop = AbortSignal.any([signal, enough.signal])
  const producing = [
    producer.repeat(stop, () => 1_000, oneForEachLane),
    ...Array.from({ length: SMALL_TENANTS }, (_, number) => {
      const random = seededRandom(number)
      const job = { tenant: `small-${number}`, holdMs }
      const meanGapMs = (batch / SMALL_PER_SECOND) * 1_000
      return producer.repeat(
        stop,
        () => meanGapMs * (0.5 + random()),
        () => Array(batch).fill(job),
      )
    }),
  ]
  await delay(seconds * 1_000, undefined, { signal })
  enough.abort()
  await Promise.all(producing)

  const small = [...producer.submitted.values()].filter(isSmall).length
  while ((await smallCalls(upstream)) < small) await delay(ASKED_EVERY_MS, undefined, { signal })
  await delay(AFTERWARDS_MS, undefined, { signal })
  await Promise.all(workers.map((worker) => worker.end()))
  return waitsOf(producer.submitted, await upstream.arrivals(), isSmall)
}

function isSmall({ tenant }: { tenant: string }): boolean {
  return tenant !== FLOOD
}

async function smallCalls(upstream: Upstream): Promise<number> {
  return (await upstream.arrivals()).filter(isSmall).length
}

function figuresOf({ actualMs, idealMs, startsPerSecond }: Waits): Record<string, number> {
  const p99 = percentile(actualMs, 0.99)
  const idealP99 = percentile(idealMs, 0.99)
  return {
    P99OverIdeal: p99 / idealP99,
    P99WaitMs: p99,
    IdealP99WaitMs: idealP99,
    P50WaitMs: percentile(actualMs, 0.5),
    IdealP50WaitMs: percentile(idealMs, 0.5),
    StartsPerSecond: startsPerSecond,
    SmallJobs: actualMs.length,
  }
}
