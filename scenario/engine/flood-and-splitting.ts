import { setTimeout as delay } from 'node:timers/promises'
import { type QueueOptions, Sluice } from '../../src/index.ts'
import type { TestRedis } from '../../src/testing/redis-server.ts'
import type { Arrival, Upstream } from '../../test/support/upstream.ts'
import { judge } from '../judge.ts'
import { Acceptances } from '../load/acceptances.ts'
import type { ScheduledJob } from '../load/ideal-schedule.ts'
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
const SMALL = 'small-'
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
 * Jobs come one by one; then, under the limit again, ten at a time.
 */
const SCARCITIES: readonly Scarcity[] = [
  { queue: 'hands', options: {}, concurrency: 7, holdMs: 95, batch: 1 },
  { queue: 'limit', options: { limits: { queue: '132/s' } }, concurrency: 25, holdMs: 20, batch: 1 },
  { queue: 'tens', options: { limits: { queue: '132/s' } }, concurrency: 25, holdMs: 20, batch: 10 },
]

export const scenario: Scenario = {
  name: 'flood-and-splitting',
  description: 'a tenant that floods over 1,000 lanes does not delay nine others that submit 10 jobs a second each',

  async run(context) {
    const redis = await ownRedis(context)
    const upstream = await ownUpstream(context)
    const figures: Record<string, number> = {}
    for (const scarcity of SCARCITIES) {
      const { ofStore, ofProcesses } = await flood(context, scarcity, { redis, upstream })
      for (const [figure, value] of Object.entries(figuresOf(ofStore))) figures[scarcity.queue + figure] = value
      figures[`${scarcity.queue}P99FromProcessToProcessMs`] = percentile(ofProcesses.actualMs, 0.99)
    }
    return judge(figures, {
      handsP99OverIdeal: { atMost: 1.3 },
      limitP99OverIdeal: { atMost: 1.3 },
      tensP99OverIdeal: { atMost: 1.3 },
    })
  },
}

/**
 * Floods for a while and answers how long the small tenants' jobs waited: in the store, from being stored to being claimed
 * by its clock, which is what the turn order is answerable for; and from the call of `submit` to the call of the upstream,
 * which has the way of a job through the processes of a busy machine in it.
 */
async function flood(
  context: ScenarioContext,
  { queue: name, options, concurrency, holdMs, batch }: Scarcity,
  { redis, upstream }: { redis: TestRedis; upstream: Upstream },
): Promise<{ ofStore: Waits; ofProcesses: Waits }> {
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
  const acceptances = await Acceptances.watch(context, redis, SMALL)
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
      const job = { tenant: `${SMALL}${number}`, holdMs }
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
  const arrivals = await upstream.arrivals()
  return {
    ofStore: waitsOf(storedBy(producer, acceptances), arrivals.map(asClaimed), isSmall),
    ofProcesses: waitsOf(producer.submitted, arrivals, isSmall),
  }
}

/** When jobs came, for the store. The flood has work all the time: when its jobs came makes no difference. */
function storedBy({ submitted }: Producer, acceptances: Acceptances): Map<string, ScheduledJob> {
  return new Map(
    [...submitted].map(([name, job]) => {
      const at = acceptances.of(name)
      if (at === undefined && isSmall(job)) throw new Error(`${name} was never stored`)
      return [name, { ...job, at: at ?? 0 }]
    }),
  )
}

/** A fence is the instant of its claim, in µs of the store's clock. */
function asClaimed(arrival: Arrival): Arrival {
  return { ...arrival, at: Number(arrival.fence) / 1_000 }
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
