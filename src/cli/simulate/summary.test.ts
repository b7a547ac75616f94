import { expect, it } from 'vitest'
import { checkPlan, type Plan } from '../../simulate/plan.ts'
import { reportOf } from '../../simulate/report.ts'
import { Simulation } from '../../simulate/simulation.ts'
import { percent, sayWait, summarize } from './summary.ts'

async function said(plan: Plan): Promise<string[]> {
  return summarize(reportOf(await new Simulation(checkPlan(plan)).run()))
}

const bucket = { kind: 'bucket', limit: 10, windowMs: 1_000, burst: 1, jitterMs: 0 } as const

it('tells when a flood ends, what the others notice, what is in the way and what is left', async () => {
  const sentences = await said({
    duration: '10min',
    queue: { limits: { queue: bucket } },
    tenants: [
      { name: 'acme', arrivals: { jobs: 3_000 } },
      { name: 'late', arrivals: { jobs: 9_000, at: '9min' } },
      { name: 'small', count: 2, arrivals: { rate: '0.1/s' } },
    ],
  })

  expect(sentences).toEqual([
    expect.stringMatching(/^The flood of late \(9,000 jobs\) does not end within 10 min: 8,\d{3} of them are left\.$/),
    expect.stringMatching(/^The flood of acme \(3,000 jobs\) ends after 5 min \d+ s\.$/),
    expect.stringMatching(/^Nobody else waits more than \d+ ms at p99 \(small-[12]\)\.$/),
    expect.stringMatching(/^The limit queue is used up at its peak, \d+ % on average\.$/),
    expect.stringMatching(/^3,\d{3} of 12,\d{3} jobs are done after 10 min; 8,\d{3} are left\.$/),
  ])
})

it('says when the hands are what everything waits for, and what became of jobs that failed', async () => {
  const sentences = await said({
    duration: '1min',
    drain: true,
    workers: { concurrency: 2 },
    service: '1s',
    queue: { maxRetries: 0 },
    tenants: [{ name: 'acme', failures: 1, arrivals: { jobs: 200 } }],
  })

  expect(sentences).toEqual([
    expect.stringMatching(/^The flood of acme \(200 jobs\) ends after 1 min \d+ s\.$/),
    expect.stringMatching(/^The longest wait at p99 is 1 min \d+ s \(acme\)\.$/),
    expect.stringMatching(/^The 2 hands are all busy at their peak, \d+ % on average: more of them would help then\.$/),
    expect.stringMatching(/^All 200 jobs are done after 1 min \d+ s\.$/),
    '200 jobs become dead letters.',
  ])
})

it('tells the least that somebody waits whose jobs never start', async () => {
  const window = { kind: 'window', limit: 100, windowMs: 86_400_000 } as const
  const plan = { duration: '1min', queue: { limits: { queue: window } } } as const
  const starved = { name: 'b', arrivals: { rate: '5/s', from: '5s', spread: 'even' } } as const

  const [, others] = await said({ ...plan, tenants: [starved, { name: 'a', arrivals: { jobs: 100 } }] })
  const [alone] = await said({ ...plan, tenants: [{ ...starved, arrivals: { rate: '100/s' } }] })
  const [, flood] = await said({ ...plan, tenants: [{ name: 'a', arrivals: { jobs: 200 } }] })

  expect(others).toMatch(
    /^Of the others b waits longest, at least 5\d\.\d s at p99: 275 of its 275 jobs never start\.$/,
  )
  expect(alone).toMatch(/^b waits longest, at least 5\d\.\d s at p99: 5,\d{3} of its [56],\d{3} jobs never start\.$/)
  expect(flood).toMatch(/^The longest wait at p99 is at least 1 min \(a\)\.$/)
})

it('times and shares are as precise as they matter', () => {
  expect([0.4, 85.2, 999.7, 1_240, 59_940, 59_960, 61_000].map(sayWait)).toEqual([
    '0 ms',
    '85 ms',
    '1.0 s',
    '1.2 s',
    '59.9 s',
    '1 min',
    '1 min 1 s',
  ])
  expect([0, 0.004, 0.0996, 0.5, 1].map(percent)).toEqual(['0 %', '0.4 %', '10 %', '50 %', '100 %'])
})
