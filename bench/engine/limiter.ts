import Bottleneck from 'bottleneck'
import { Redis as Client } from 'ioredis'
import { RateLimiterRedis, RateLimiterRes } from 'rate-limiter-flexible'
import { Sluice } from '../../src/index.ts'
import type { BenchContext, Figures, Measure } from '../measure.ts'
import { emptyRedis, redisCpuMicros } from '../redis-meter.ts'
import { alternate } from '../rounds.ts'

/** Callers at once in one process: as many decisions are in flight on every side. */
const IN_FLIGHT = 100
/** So many that nobody is refused. */
const PLENTY = 1_000_000_000
const DAY_SECONDS = 86_400

interface Limiter {
  /** Asks for one permit; false if it was refused. */
  decide(): Promise<boolean>
  close(): Promise<void>
}

/**
 * How many decisions of a limiter kept in Redis one process gets in a second, one permit each: once where all are
 * granted, once where the budget is spent half-way and the others are refused. What was granted is counted.
 *
 * What makes it fair: every side has its own connection to the same Redis and the same hundred callers, each of whom asks
 * again when it is answered; each decision is counted in Redis and answered to its caller with what is left. All count a
 * fixed window of a day, which is the only kind that rate-limiter-flexible has, and its cheapest. It gets plain ioredis:
 * with `enableAutoPipelining` it needs half as much processor time again. It is not allowed to remember refusals
 * (`inMemoryBlockOnConsumed`), which would then be no decisions of the store; neither do we. Sluice sends callers of one
 * turn of the event loop together, as it does for any caller: that is where its lead is from, and with one caller in
 * flight it has none. Bottleneck has no refusals of a spent reservoir, it queues: it only takes part where all is granted.
 */
export const limiter: Measure = {
  name: 'limiter',
  title: 'limiter decisions',

  async run({ redis, meter, quick }: BenchContext): Promise<Figures> {
    const measure = async (name: keyof typeof sides, isWarmUp: boolean, share: number) => {
      const { make, decisions: most } = sides[name]
      const decisions = most / (isWarmUp ? 4 : 1) / (quick ? 2 : 1)
      const budget = share < 1 ? Math.floor(decisions * share) : PLENTY
      const side = await make(redis.path, budget)
      try {
        const cpuBefore = await redisCpuMicros(meter)
        const ownBefore = process.cpuUsage()
        const startedAt = performance.now()
        const granted = await decideAll(side, decisions)
        const seconds = (performance.now() - startedAt) / 1_000
        const own = process.cpuUsage(ownBefore)
        const cpu = (await redisCpuMicros(meter)) - cpuBefore
        const expected = Math.min(budget, decisions)
        if (granted !== expected) throw new Error(`${name} granted ${granted} instead of ${expected}`)
        return {
          perSecond: decisions / seconds,
          redisMicros: cpu / decisions,
          ownMicros: (own.user + own.system) / decisions,
        }
      } finally {
        await side.close()
        await emptyRedis(meter)
      }
    }
    const rounds = { rounds: quick ? 3 : 5, warmUps: 1 }
    const all = await alternate(['sluice', 'flexible', 'bottleneck'], rounds, (name, { warmUp }) =>
      measure(name, warmUp, 1),
    )
    const half = await alternate(['sluice', 'flexible'], rounds, (name, { warmUp }) => measure(name, warmUp, 0.5))
    return {
      limiterPerSecond: all.sluice.perSecond,
      limiterPerSecondRateLimiterFlexible: all.flexible.perSecond,
      limiterPerSecondBottleneck: all.bottleneck.perSecond,
      limiterRatioRateLimiterFlexible: all.sluice.perSecond / all.flexible.perSecond,
      limiterRatioBottleneck: all.sluice.perSecond / all.bottleneck.perSecond,
      limiterHalfRefusedPerSecond: half.sluice.perSecond,
      limiterHalfRefusedPerSecondRateLimiterFlexible: half.flexible.perSecond,
      limiterHalfRefusedRatioRateLimiterFlexible: half.sluice.perSecond / half.flexible.perSecond,
      limiterRedisMicros: all.sluice.redisMicros,
      limiterRedisMicrosRateLimiterFlexible: all.flexible.redisMicros,
      limiterRedisMicrosBottleneck: all.bottleneck.redisMicros,
      limiterOwnMicros: all.sluice.ownMicros,
      limiterOwnMicrosRateLimiterFlexible: all.flexible.ownMicros,
      limiterOwnMicrosBottleneck: all.bottleneck.ownMicros,
    }
  },
}

/** How many decisions take about half a second of a quiet machine. */
const sides = {
  sluice: { make: ofSluice, decisions: 200_000 },
  flexible: { make: ofRateLimiterFlexible, decisions: 60_000 },
  bottleneck: { make: ofBottleneck, decisions: 6_000 },
}

/** Answers how many were granted. */
async function decideAll(side: Limiter, decisions: number): Promise<number> {
  let left = decisions
  let granted = 0
  const caller = async (): Promise<void> => {
    while (left > 0) {
      left -= 1
      if (await side.decide()) granted += 1
    }
  }
  await Promise.all(Array.from({ length: IN_FLIGHT }, caller))
  return granted
}

async function ofSluice(path: string, budget: number): Promise<Limiter> {
  const sluice = new Sluice({ redis: { path } })
  // Grants keep for long: on a machine that is busy with something else none is asked for twice.
  const definition = { kind: 'window', limit: budget, windowMs: DAY_SECONDS * 1_000, jitterMs: 1_000 } as const
  const limit = sluice.limit('bench', definition)
  await limit.ready()
  return {
    decide: async () => (await limit.acquire()).granted,
    close: () => sluice.close(),
  }
}

async function ofRateLimiterFlexible(path: string, budget: number): Promise<Limiter> {
  const storeClient = new Client({ path })
  await storeClient.ping()
  const limit = new RateLimiterRedis({ storeClient, points: budget, duration: DAY_SECONDS, keyPrefix: 'bench' })
  const granted = () => true
  const refused = (answer: unknown) => {
    if (answer instanceof RateLimiterRes) return false
    throw answer
  }
  return {
    decide: () => limit.consume('all').then(granted, refused),
    close: async () => void (await storeClient.quit()),
  }
}

async function ofBottleneck(path: string, budget: number): Promise<Limiter> {
  const limit = new Bottleneck({
    id: 'bench',
    datastore: 'ioredis',
    clientOptions: { path },
    Redis: Client,
    reservoir: budget,
    clearDatastore: true,
  })
  await limit.ready()
  return {
    decide: () => limit.schedule(async () => true),
    close: () => limit.disconnect() as Promise<void>,
  }
}
