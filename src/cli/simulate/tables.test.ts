import { expect, it } from 'vitest'
import { checkPlan } from '../../simulate/plan.ts'
import { reportOf } from '../../simulate/report.ts'
import { Simulation } from '../../simulate/simulation.ts'
import { tablesOf } from './tables.ts'

it('marks waits that are longer than could be seen, and says why', async () => {
  const plan = checkPlan({
    duration: '1min',
    queue: { limits: { queue: { kind: 'window', limit: 100, windowMs: 86_400_000 } } },
    tenants: [
      { name: 'a', arrivals: { jobs: 100 } },
      { name: 'b', arrivals: { rate: '5/s', from: '5s', spread: 'even' } },
    ],
  })

  const text = tablesOf(reportOf(await new Simulation(plan).run()), 15)

  expect(text).toMatch(/^b +275 +0 +275 +(≥ \d+\.\d s +){5}–/m)
  expect(text).toMatch(/^a +100 +100 +0 +\d+ ms /m)
  expect(text).toContain('\n≥ at least: 275 jobs that never start count with the wait until the end\n')
})
