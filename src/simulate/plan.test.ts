import { describe, expect, it } from 'vitest'
import type { InvalidOptionsError } from '../errors.ts'
import { checkPlan } from './plan.ts'

const tenant = { name: 'acme', arrivals: { jobs: 10 } }

function problemsOf(plan: unknown): string[] {
  try {
    checkPlan(plan)
  } catch (error) {
    return (error as InvalidOptionsError).problems.map(({ path, problem }) => `${path} ${problem}`)
  }
  throw new Error('the plan is taken')
}

describe('checkPlan', () => {
  it('fills in what is not given as a queue does', () => {
    const plan = checkPlan({ duration: '1h', tenants: [tenant] })

    expect(plan).toMatchObject({
      durationUs: 3_600e6,
      seed: 1,
      drains: false,
      workers: { processes: 1, concurrency: 10 },
      values: { strict: 0, quantum: 4, alpha: 0, max_progress: 60e6, max_wait: 60e6 },
      maxRetries: 3,
      jobTimeoutUs: 30e6,
    })
    expect(plan.groups[0]).toMatchObject({ members: ['acme'], weight: 1, level: 'normal', failures: 0, limits: [] })
    expect(plan.groups[0]?.service.meanUs).toBe(100_000)
  })

  it('names the members of a group, and lets their own limits override the template', () => {
    const { groups } = checkPlan({
      duration: '1h',
      queue: { limits: { tenant: { calls: '5/s', slots: { kind: 'concurrency', max: 2 } } } },
      tenants: [{ ...tenant, count: 2, limits: { calls: '9/s', daily: '100/d' } }],
    })

    expect(groups[0]?.members).toEqual(['acme-1', 'acme-2'])
    expect(groups[0]?.limits.map(({ name, kind }) => `${name} ${kind}`)).toEqual([
      'calls bucket',
      'slots concurrency',
      'daily bucket',
    ])
    expect(groups[0]?.limits[0]).toMatchObject({ count: 9 })
  })

  it('says everything that is wrong, where, and what to do', () => {
    const problems = problemsOf({
      duration: 'long',
      drane: true,
      workers: { concurrency: 0 },
      queue: { limits: { queue: '5/fortnight' } },
      service: { p50: '90ms', p99: '10ms' },
      tenants: [
        { name: 'acme', level: 'hihg', arrivals: [{ rate: 'often' }, { when: 'now' }] },
        { name: 'globex', arrivals: { perHour: [1, 2] }, limits: 'much' },
        { arrivals: { rate: '1/s', from: '2h', until: '1h' } },
      ],
    })

    expect(problems).toEqual([
      'duration must be a time such as "90ms", "30s", "15min", "24h" or "7d", at most 366 days, not "long"',
      'workers.concurrency must be a whole number from 1 to 100000, not 0',
      `queue.limits.queue must be a rate such as '500/s', '30/min' or '1000/10s', not '5/fortnight'`,
      'service must have a p99 that is no less than its p50',
      'tenants[0].level must be "high", "normal" or "low", not "hihg"; did you mean "high"?',
      'tenants[0].arrivals[0].rate must be a rate above 0 such as "5/s", "0.2/s" or "300/h", not "often"',
      'tenants[0].arrivals[1] must have "jobs" (at once), "rate" or "perHour", and an object has none of them',
      `tenants[1].limits must be a rate such as '500/s', '30/min' or '1000/10s', not 'much'`,
      'tenants[1].arrivals.perHour must be a list of 24 numbers, one for each hour of the day, not an array',
      'tenants[2].name is required',
      'tenants[2].arrivals.until must be later than its from',
      'drane is not an option; did you mean "drain"?',
    ])
  })

  it('refuses a quota, and says what to put in its place', () => {
    const [problem] = problemsOf({
      duration: '1h',
      queue: { limits: { github: { kind: 'quota' } } },
      tenants: [tenant],
    })

    expect(problem).toBe(
      'queue.limits has the quota "github", which only an upstream knows: give what it allows as a window, ' +
        '{"kind":"window","limit":5000,"windowMs":3600000}',
    )
  })

  it("has a tenant's own limit go by the jitter of the template where that is wider, within the room it has", () => {
    const own = (limit: object) => ({
      ...tenant,
      limits: { calls: { kind: 'bucket', limit: 9, windowMs: 1_000, ...limit } },
    })

    const { groups } = checkPlan({
      duration: '1h',
      queue: { limits: { tenant: { calls: { kind: 'bucket', limit: 5, windowMs: 1_000, jitterMs: 200 } } } },
      tenants: [
        { ...own({}), name: 'narrower' },
        { ...own({ jitterMs: 300 }), name: 'wider' },
        { ...own({ kind: 'window', windowMs: 200 }), name: 'short-window' },
      ],
    })

    expect(groups.map(({ limits }) => limits[0])).toMatchObject([
      { jitter: 200_000 },
      { jitter: 300_000 },
      { jitter: 100_000 },
    ])
  })

  it('refuses limits of one name whose jitter differs, where no template says which one holds', () => {
    const own = (jitterMs: number) => ({ bulk: { kind: 'bucket', limit: 9, windowMs: 1_000, jitterMs } })

    const problems = problemsOf({
      duration: '1h',
      queue: { limits: { tenant: { bulk: { kind: 'concurrency', max: 2 } } } },
      tenants: [
        { ...tenant, limits: own(50) },
        { ...tenant, name: 'globex', limits: '9/s' },
        { ...tenant, name: 'initech', limits: own(10) },
      ],
    })

    expect(problems).toEqual([
      'tenants[2].limits has a "bulk" with a jitterMs of 10, and an earlier tenant\'s has 50: a queue keeps one for all limits ' +
        'of a name. Give both the same, or one of them another name',
    ])
  })

  it('refuses two tenants of one name, also where a group makes it', () => {
    const problems = problemsOf({
      duration: '1h',
      tenants: [
        { ...tenant, count: 3 },
        { ...tenant, name: 'acme-2' },
      ],
    })

    expect(problems).toEqual(['tenants[1].name makes a second tenant "acme-2"; choose another'])
  })

  it('refuses more tenants than it can hold before it makes their names', () => {
    const problems = problemsOf({
      duration: '1h',
      tenants: [
        { ...tenant, count: 60_000 },
        { name: 'b', count: 60_000, arrivals: { jobs: 1 } },
      ],
    })

    expect(problems).toEqual(['tenants must be at most 100000 in all'])
  })

  it('counts the jobs to expect', () => {
    const day = Array.from({ length: 24 }, (_, hour) => (hour < 6 ? 10 : 0))
    const { expectedJobs } = checkPlan({
      duration: '12h',
      tenants: [
        { name: 'a', arrivals: { jobs: 5, every: '4h' } },
        { name: 'b', count: 2, arrivals: { rate: '1/h', from: '2h' } },
        { name: 'c', arrivals: { perHour: day } },
      ],
    })

    expect(expectedJobs).toBe(3 * 5 + 2 * 10 + 60)
  })
})
