import { setTimeout as sleep } from 'node:timers/promises'
import { describe, expect, it, onTestFinished } from 'vitest'
import { type Queue, Sluice } from '../../src/index.ts'
import { checkPlan, type Plan } from '../../src/simulate/plan.ts'
import { reportOf, type SimulationReport } from '../../src/simulate/report.ts'
import { Simulation } from '../../src/simulate/simulation.ts'
import { goFirst } from '../../src/testing/go-first.ts'
import { startRedis } from '../../src/testing/redis-server.ts'

const PROCESSES = 2
const CONCURRENCY = 12
const SERVICE_MS = 60

/**
 * With bursts of some tenths of a second, and grants that keep as long: what a busy machine comes late for is not lost then, so
 * that the test is about the queue and not about the machine.
 */
const bucket = (limit: number, burst: number) =>
  ({ kind: 'bucket', limit, windowMs: 1_000, burst, jitterMs: 1_000 }) as const
const limits = { queue: bucket(240, 40), tenant: bucket(160, 30) }

/** A flood, smaller ones beside it and later, one of more weight, and one that its own bucket holds up. */
const floods = [
  { tenant: 'acme', jobs: 600, atMs: 0, weight: 1 },
  { tenant: 'globex', jobs: 250, atMs: 0, weight: 2 },
  { tenant: 'initech', jobs: 80, atMs: 2_000, weight: 1 },
  { tenant: 'hooli', jobs: 50, atMs: 0, weight: 1, own: bucket(16, 4) },
  { tenant: 'umbrella', jobs: 60, atMs: 4_000, weight: 1 },
] as const

const plan: Plan = {
  // Until the last has come.
  duration: '5s',
  drain: true,
  workers: { processes: PROCESSES, concurrency: CONCURRENCY },
  queue: { limits },
  service: `${SERVICE_MS}ms`,
  tenants: floods.map((flood) => ({
    name: flood.tenant,
    weight: flood.weight,
    arrivals: { jobs: flood.jobs, at: `${flood.atMs}ms` },
    ...('own' in flood ? { limits: { tenant: flood.own } } : {}),
  })),
}

interface Measured {
  readonly meanWaitMs: number
  readonly tookMs: number
}

async function predict(): Promise<SimulationReport> {
  return reportOf(await new Simulation(checkPlan(plan)).run())
}

/** The same on a real Redis, with real workers, in real time. */
async function measure(): Promise<Map<string, Measured>> {
  goFirst()
  const redis = await startRedis()
  onTestFinished(() => redis.stop())
  const waits = new Map<string, number[]>(floods.map(({ tenant }) => [tenant, []]))
  const submittedAt = new Map<string, number>()
  const queues: Queue[] = []
  for (let count = 0; count < PROCESSES; count++) {
    const sluice = new Sluice({ redis: { path: redis.path } })
    onTestFinished(() => sluice.close())
    queues.push(sluice.queue('calls', { limits }))
  }
  const [queue] = queues as [Queue]
  for (const flood of floods) {
    await queue.tenant(flood.tenant).set({ weight: flood.weight })
    if ('own' in flood) await queue.tenant(flood.tenant).setLimits({ tenant: flood.own })
  }
  const submit = async ({ tenant, jobs, atMs }: (typeof floods)[number]) => {
    await sleep(atMs)
    submittedAt.set(tenant, performance.now())
    return queue.submit({ tenant, type: 'call', jobs: Array.from({ length: jobs }, (_, n) => ({ payload: n })) })
  }
  const submits = floods.map(submit)
  // The floods of the beginning are there when the workers start: a wake-up between two of them would give the first a lead.
  await Promise.all(submits.filter((_, at) => floods[at]?.atMs === 0))
  for (const each of queues) {
    const handler = async ({ tenant }: { tenant: string }) => {
      waits.get(tenant)?.push(performance.now() - (submittedAt.get(tenant) ?? 0))
      await sleep(SERVICE_MS)
    }
    each.process('call', handler, { concurrency: CONCURRENCY })
  }
  const tookMs = await Promise.all(
    floods.map(async ({ tenant }, at) => {
      await (await submits[at])?.finished()
      return performance.now() - (submittedAt.get(tenant) ?? 0)
    }),
  )
  return new Map(
    floods.map(({ tenant }, at) => {
      const all = waits.get(tenant) ?? []
      return [tenant, { meanWaitMs: all.reduce((sum, ms) => sum + ms, 0) / all.length, tookMs: tookMs[at] as number }]
    }),
  )
}

describe('a simulation beside a real run', () => {
  it('predicts times to completion and mean waits within a tenth', async () => {
    const report = await predict()

    const measured = await measure()

    for (const { tenant, jobs } of floods) {
      const real = measured.get(tenant) as Measured
      const predicted = report.tenants.find((each) => each.tenant === tenant)
      expect(predicted?.jobs.succeeded).toBe(jobs)
      const off = {
        took: (predicted?.tookMs ?? 0) / real.tookMs - 1,
        wait: (predicted?.wait.meanMs ?? 0) / real.meanWaitMs - 1,
      }
      expect(Math.abs(off.took), `${tenant} took ${real.tookMs} ms, predicted ${predicted?.tookMs}`).toBeLessThan(0.1)
      expect(Math.abs(off.wait), `${tenant} waited ${real.meanWaitMs} ms on average`).toBeLessThan(0.1)
    }
  })
})
