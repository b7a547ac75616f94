import { readFileSync } from 'node:fs'
import { describe, expect, it } from 'vitest'
import { checkPlan, type Plan, type PlanTenant } from './plan.ts'
import { jainIndex, reportOf, type SimulationReport } from './report.ts'
import { Simulation } from './simulation.ts'

async function simulated(plan: Plan): Promise<SimulationReport> {
  return reportOf(await new Simulation(checkPlan(plan)).run())
}

function tenantOf(report: SimulationReport, name: string) {
  const found = report.tenants.find(({ tenant }) => tenant === name)
  if (!found) throw new Error(`no tenant ${name}`)
  return found
}

const flood: PlanTenant = { name: 'acme', arrivals: { jobs: 1_000 } }

describe('a simulation', () => {
  it('says the same for the same plan, and something else for another seed', async () => {
    const plan: Plan = {
      duration: '1h',
      queue: { limits: { queue: '2/s' } },
      tenants: [{ name: 'a', count: 9, arrivals: { rate: '0.2/s' } }],
    }

    const [first, again, other] = await Promise.all([simulated(plan), simulated(plan), simulated({ ...plan, seed: 2 })])

    expect(again).toEqual(first)
    expect(other).not.toEqual(first)
  })

  it('drains a flood at the effective rate of a bucket', async () => {
    const bucket = { kind: 'bucket', limit: 10, windowMs: 1_000, burst: 1, jitterMs: 0 } as const

    const report = await simulated({
      duration: '1s',
      drain: true,
      queue: { limits: { queue: bucket } },
      service: '20ms',
      tenants: [flood],
    })

    expect(report.floods).toEqual([{ tenant: 'acme', jobs: 1_000, atMs: 0, tookMs: 99_920, left: 0 }])
    expect(report.tookMs).toBe(99_920)
    expect(report.limits[0]?.used.average).toBeCloseTo(1, 2)
  })

  it('shares the first claim out between floods of the same instant', async () => {
    const report = await simulated({
      duration: '1500ms',
      workers: { concurrency: 16 },
      service: '1s',
      tenants: ['a', 'b'].map((name) => ({ name, arrivals: { jobs: 100 } })),
    })

    expect(report.tenants.map(({ jobs }) => jobs.succeeded)).toEqual([8, 8])
  })

  it('drains a flood as fast as the hands are when no limit is given', async () => {
    const plan: Plan = {
      duration: '1s',
      drain: true,
      workers: { processes: 2, concurrency: 5 },
      service: '1s',
      tenants: [flood],
    }

    const report = await simulated(plan)

    // A hundred rounds of a second, and the moments in which ended jobs are gathered.
    expect(report.floods[0]?.tookMs).toBeGreaterThanOrEqual(100_000)
    expect(report.floods[0]?.tookMs).toBeLessThan(102_000)
    expect(report.hands.used.peak).toBeGreaterThan(0.97)
  })

  it('waits as long as theory says for one hand and arrivals by chance', async () => {
    const plan: Plan = {
      duration: '8h',
      workers: { concurrency: 1 },
      service: '1s',
      tenants: [{ name: 'a', arrivals: { rate: '0.5/s' } }],
    }

    const report = await simulated(plan)

    // M/D/1 at half its capacity: half a service time. What has ended is told 15 ms later at the most.
    expect(report.wait.meanMs).toBeGreaterThan(460)
    expect(report.wait.meanMs).toBeLessThan(570)
  })

  it('shares by weight while all have work', async () => {
    const plan: Plan = {
      duration: '1min',
      queue: { limits: { queue: '20/s' } },
      tenants: [flood, { ...flood, name: 'heavy', weight: 3 }].map((tenant) => ({
        ...tenant,
        arrivals: { jobs: 5_000 },
      })),
    }

    const report = await simulated(plan)

    expect(tenantOf(report, 'heavy').received).toBeCloseTo(0.75, 2)
    expect(tenantOf(report, 'heavy').entitled).toBeCloseTo(0.75, 2)
    expect(report.fairness).toBeGreaterThan(0.999)
  })

  it('leaves behind what does not fit into its time', async () => {
    const report = await simulated({ duration: '10s', queue: { limits: { queue: '10/s' } }, tenants: [flood] })

    const { jobs, tookMs } = tenantOf(report, 'acme')
    expect(jobs.succeeded + jobs.left).toBe(1_000)
    expect(jobs.succeeded).toBeGreaterThan(85)
    expect(jobs.succeeded).toBeLessThan(100)
    expect(tookMs).toBeNull()
    expect(report.floods[0]).toMatchObject({ tookMs: null, left: jobs.left })
  })

  it('counts jobs that never start with their wait until the end', async () => {
    const report = await simulated({
      duration: '1min',
      queue: { limits: { queue: { kind: 'window', limit: 100, windowMs: 86_400_000 } } },
      tenants: [
        { name: 'a', arrivals: { jobs: 100 } },
        { name: 'b', arrivals: { rate: '5/s', from: '5s', spread: 'even' } },
      ],
    })

    const { wait, jobs } = tenantOf(report, 'b')
    expect(jobs).toMatchObject({ submitted: 275, left: 275 })
    expect(wait).toMatchObject({ unstarted: 275, atLeast: ['meanMs', 'p50Ms', 'p95Ms', 'p99Ms', 'maxMs'] })
    expect(wait.meanMs).toBeCloseTo(27_500, -3)
    expect(wait.maxMs).toBeCloseTo(55_000, -3)
    expect(tenantOf(report, 'a').wait).toMatchObject({ unstarted: 0, atLeast: [] })
    expect(report.wait.unstarted).toBe(275)
  })

  // The time of the processor is judged, against the same without draining.
  it('does not look at every tenant with every event when it drains', async () => {
    const idle: PlanTenant = { name: 'idle', count: 50_000, arrivals: { jobs: 1, at: '1d' } }
    const cpuOf = async (plan: Pick<Plan, 'duration' | 'drain'>) => {
      const simulation = new Simulation(
        checkPlan({ ...plan, tenants: [{ ...flood, arrivals: { jobs: 5_000 } }, idle] }),
      )
      const before = process.cpuUsage()
      await simulation.run()
      const { user, system } = process.cpuUsage(before)
      return user + system
    }

    const [bounded, draining] = [await cpuOf({ duration: '52s' }), await cpuOf({ duration: '1s', drain: true })]

    expect(draining / bounded).toBeLessThan(4)
  })

  it('tries failed runs again, and gives up as a queue does', async () => {
    const plan: Plan = { duration: '1h', queue: { maxRetries: 2 }, tenants: [{ ...flood, failures: 1 }] }

    const { jobs } = await simulated(plan)

    expect(jobs).toEqual({ submitted: 1_000, succeeded: 0, failed: 1_000, retried: 2_000, left: 0 })
  })

  it('ends runs that take longer than a job may', async () => {
    const plan: Plan = { duration: '1h', queue: { maxRetries: 0, jobTimeoutMs: 500 }, service: '2s', tenants: [flood] }

    const { jobs, tookMs, floods } = await simulated(plan)

    expect(jobs.failed).toBe(1_000)
    expect(floods[0]?.tookMs).toBeLessThan(60_000)
    expect(tookMs).toBe(3_600_000)
  })

  it('tells the use of a budget by its window, and of slots by those that are taken', async () => {
    const report = await simulated({
      duration: '2h',
      queue: {
        limits: { budget: { kind: 'window', limit: 400, windowMs: 3_600_000 }, slots: { kind: 'concurrency', max: 4 } },
      },
      service: '1s',
      tenants: [flood],
    })

    const [budget, slots] = report.limits
    expect(budget?.used.peak).toBe(1)
    expect(report.jobs.succeeded).toBe(800)
    // 800 jobs of a second in four slots of two hours.
    expect(slots?.used.average).toBeCloseTo(800 / (4 * 7_200), 3)
  })

  it.each([
    ['a day that ends when its window does', { duration: '24h' }, 0.4],
    ['a day whose last job ends a moment after midnight', { duration: '24h', drain: true }, 0.4],
    ['a day and a half, of which the rest is not used', { duration: '36h' }, 0.4 / 1.5],
    ['a part of a day', { duration: '86395s' }, 0.4],
  ])('says how much of a budget is used: %s', async (_, time, average) => {
    const budget = { kind: 'window', limit: 1_000, windowMs: 86_400_000 } as const
    const lateInTheDay = [
      { jobs: 399, at: '12h' },
      { jobs: 1, at: '86390s' },
    ]

    const report = await simulated({
      ...time,
      queue: { limits: { budget } },
      service: '20s',
      tenants: [{ name: 'acme', arrivals: lateInTheDay }],
    })

    const used = report.limits[0]?.used
    expect(used?.peak).toBe(0.4)
    expect(used?.average).toBeCloseTo(average, 4)
    // At the end of the day itself it is what the day has used.
    if (report.tookMs === 86_400_000) expect(used?.overTime.at(-1)).toBe(0.4)
  })

  it('counts also windows in which nothing happens, and finds the fullest however short it is', async () => {
    const report = await simulated({
      duration: '1h',
      queue: { limits: { budget: { kind: 'window', limit: 100, windowMs: 1_000 } } },
      service: '10ms',
      workers: { processes: 1, concurrency: 50 },
      tenants: [{ name: 'acme', arrivals: { jobs: 36, at: '500s' } }],
    })

    expect(report.limits[0]?.used).toMatchObject({ average: 36 / (100 * 3_600), peak: 0.36 })
  })

  it('repeats a flood, each time as an action of its own', async () => {
    const plan: Plan = {
      duration: '1h',
      tenants: [{ name: 'acme', arrivals: { jobs: 10, at: '5min', every: '20min' } }],
    }

    const { floods } = await simulated(plan)

    expect(floods.map(({ atMs }) => atMs / 60_000)).toEqual([5, 25, 45])
  })

  it('has as many values over time as instants, also when it goes on after its duration', async () => {
    const plan: Plan = { duration: '1min', drain: true, queue: { limits: { queue: '1/s' } }, tenants: [flood] }

    const { timesMs, groups, limits, hands, tookMs } = await simulated(plan)

    expect(timesMs.length).toBeGreaterThan(100)
    expect(timesMs.length).toBeLessThanOrEqual(240)
    expect(Math.abs((timesMs.at(-1) as number) / tookMs - 1)).toBeLessThan(0.02)
    for (const values of [groups[0]?.backlog, limits[0]?.used.overTime, hands.used.overTime]) {
      expect(values).toHaveLength(timesMs.length)
    }
    const backlog = groups[0]?.backlog ?? []
    expect(backlog.toSorted((a, b) => b - a)).toEqual(backlog)
  })

  it('has values over time up to its very end', async () => {
    const { timesMs, groups, tookMs } = await simulated({
      duration: '1min',
      queue: { limits: { queue: '10/s' } },
      tenants: [flood],
    })

    expect(timesMs.at(-1)).toBe(tookMs)
    expect(groups[0]?.backlog).toHaveLength(timesMs.length)
    expect(groups[0]?.backlog.at(-1)).toBe(groups[0]?.wait.unstarted)
  })

  it('can be stopped', async () => {
    const plan = checkPlan({ duration: '366d', tenants: [{ name: 'a', arrivals: { rate: '100/s' } }] })
    const controller = new AbortController()

    const run = new Simulation(plan).run({
      signal: controller.signal,
      onProgress: () => controller.abort(new Error('enough')),
    })

    await expect(run).rejects.toThrow('enough')
  })
})

describe('a day of 1,000 tenants', () => {
  // The time of the processor is judged; the machine may have much else to do.
  it('takes less than a minute of one processor', { timeout: 300_000 }, async () => {
    const plan = JSON.parse(readFileSync('examples/simulate/flood-beside-thousand.json', 'utf8')) as Plan
    const before = process.cpuUsage()

    const report = await simulated(plan)

    const { user, system } = process.cpuUsage(before)
    expect((user + system) / 1e6).toBeLessThan(60)
    expect(report.tenants).toHaveLength(1_000)
    expect(report.tookMs).toBe(86_400_000)
    expect(report.jobs.submitted).toBeGreaterThan(400_000)
    const { submitted, succeeded, left } = report.jobs
    expect(succeeded + left).toBe(submitted)
    const budget = report.limits.find(({ name }) => name === 'budget')?.used
    expect(budget?.average).toBeCloseTo(submitted / 1_000_000, 4)
    expect(budget?.overTime.at(-1)).toBe(budget?.average)
  })
})

it("Jain's index is 1 when all get alike, and 1/n when one gets everything", () => {
  expect(jainIndex([2, 2, 2])).toBe(1)
  expect(jainIndex([1, 0, 0, 0])).toBe(0.25)
  expect(jainIndex([])).toBeNull()
})
