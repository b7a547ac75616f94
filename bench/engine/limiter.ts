import Bottleneck from 'bottleneck'
import { Redis as Client } from 'ioredis'
import { RateLimiterRedis } from 'rate-limiter-flexible'
import { Sluice } from '../../src/index.ts'
import type { BenchContext, Figures, Measure } from '../measure.ts'
import { emptyRedis, redisCpuMicros } from '../redis-meter.ts'
import { alternate } from '../rounds.ts'

/** Callers at once in one process: as many decisions are in flight on every side. */
const IN_FLIGHT = 100
/** So many that nobody is refused: what is timed is the decision. */
const PLENTY = 1_000_000_000

interface Limiter {
  /** Asks for one permit. */
  decide(): Promise<unknown>
  close(): Promise<void>
}

/** How many decisions of a limiter kept in Redis one process gets in a second, one permit each. */
export const limiter: Measure = {
  name: 'limiter',
  title: 'limiter decisions',

  async run({ redis, meter, quick }: BenchContext): Promise<Figures> {
    const counts = { sluice: 60_000, flexible: 30_000, bottleneck: 6_000 }
    const make = { sluice: ofSluice, flexible: ofRateLimiterFlexible, bottleneck: ofBottleneck }
    const names = Object.keys(make) as (keyof typeof make)[]
    const figures = await alternate(names, { rounds: quick ? 3 : 5, warmUps: 1 }, async (name, { warmUp }) => {
      const side = await make[name](redis.path)
      try {
        await side.decide()
        const decisions = counts[name] / (warmUp ? 4 : 1) / (quick ? 2 : 1)
        const cpuBefore = await redisCpuMicros(meter)
        const startedAt = performance.now()
        await decideAll(side, decisions)
        const seconds = (performance.now() - startedAt) / 1_000
        const cpu = (await redisCpuMicros(meter)) - cpuBefore
        return { perSecond: decisions / seconds, redisMicros: cpu / decisions }
      } finally {
        await side.close()
        await emptyRedis(meter)
      }
    })
    return {
      limiterPerSecond: figures.sluice.perSecond,
      limiterPerSecondRateLimiterFlexible: figures.flexible.perSecond,
      limiterPerSecondBottleneck: figures.bottleneck.perSecond,
      limiterRatioRateLimiterFlexible: figures.sluice.perSecond / figures.flexible.perSecond,
      limiterRatioBottleneck: figures.sluice.perSecond / figures.bottleneck.perSecond,
      limiterRedisMicros: figures.sluice.redisMicros,
      limiterRedisMicrosRateLimiterFlexible: figures.flexible.redisMicros,
      limiterRedisMicrosBottleneck: figures.bottleneck.redisMicros,
    }
  },
}

async function decideAll(side: Limiter, decisions: number): Promise<void> {
  let left = decisions
  const caller = async (): Promise<void> => {
    while (left > 0) {
      left -= 1
      await side.decide()
    }
  }
  await Promise.all(Array.from({ length: IN_FLIGHT }, caller))
}

async function ofSluice(path: string): Promise<Limiter> {
  const sluice = new Sluice({ redis: { path } })
  // Grants keep for long: on a machine that is busy with something else none is asked for twice.
  const definition = { kind: 'window', limit: PLENTY, windowMs: 86_400_000, jitterMs: 1_000 } as const
  const limit = sluice.limit('bench', definition)
  await limit.ready()
  return {
    decide: async () => {
      const { granted } = await limit.acquire()
      if (!granted) throw new Error('a permit was refused')
    },
    close: () => sluice.close(),
  }
}

async function ofRateLimiterFlexible(path: string): Promise<Limiter> {
  const storeClient = new Client({ path })
  const limit = new RateLimiterRedis({ storeClient, points: PLENTY, duration: 86_400, keyPrefix: 'bench' })
  return {
    decide: () => limit.consume('all'),
    close: async () => void (await storeClient.quit()),
  }
}

async function ofBottleneck(path: string): Promise<Limiter> {
  const limit = new Bottleneck({
    id: 'bench',
    datastore: 'ioredis',
    clientOptions: { path },
    Redis: Client,
    reservoir: PLENTY,
    clearDatastore: true,
  })
  await limit.ready()
  return {
    decide: () => limit.schedule(async () => {}),
    close: () => limit.disconnect() as Promise<void>,
  }
}
