import { afterEach, describe, expect, it } from 'vitest'
import { Scenario, type Worker } from './scenario.ts'

const WINDOW_MS = 1_000

let scenario: Scenario
afterEach(() => scenario.stop())

async function start(perSecond: number, processes: number, seconds: number): Promise<Worker[]> {
  scenario = await Scenario.start({
    upstream: true,
    history: false,
    queue: { limits: { queue: `${perSecond}/s` }, leaseMs: 3_000 },
  })
  await scenario.submitted({ count: perSecond * seconds, chunk: 1_000, ids: 'generated' })
  return Promise.all(Array.from({ length: processes }, () => scenario.worker({ concurrency: 50 })))
}

async function arrived(count: number, limit: { permits: number }) {
  const ask = () => scenario.upstream?.report({ ...limit, windowMs: WINDOW_MS })
  await expect.poll(async () => (await ask())?.total, { timeout: 60_000, interval: 200 }).toBeGreaterThanOrEqual(count)
  const report = await ask()
  if (report === undefined) throw new Error('no upstream')
  return report
}

describe('a bucket limit, as the upstream counts', () => {
  for (const permits of [30, 500, 5_000]) {
    for (const processes of [1, 4]) {
      it(`of ${permits}/s is never exceeded and at least nine tenths used by ${processes} processes`, async () => {
        const seconds = 5
        await start(permits, processes, seconds)

        const report = await arrived(permits * seconds, { permits })

        expect(report.busiest.count).toBeLessThanOrEqual(permits)
        expect(report.usedShare).toBeGreaterThanOrEqual(0.9)
        expect(report.total).toBe(permits * seconds)
      })
    }

    it(`of ${permits}/s is never exceeded by processes that are stopped and resumed`, async () => {
      const seconds = 4
      const workers = await start(permits, 4, seconds)

      for (const [round, worker] of [...workers, ...workers].entries()) {
        await arrived(Math.floor((permits * seconds * (round + 1)) / 12), { permits })
        worker.freeze()
        // Longer than a grant keeps, shorter than a lease.
        await new Promise((resolve) => setTimeout(resolve, 150))
        worker.resume()
      }
      const report = await arrived(permits * seconds, { permits })

      expect(report.busiest.count).toBeLessThanOrEqual(permits)
    })
  }
})
