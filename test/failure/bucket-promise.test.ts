import { afterEach, describe, expect, it } from 'vitest'
import type { Upstream } from '../support/upstream.ts'
import { Scenario, type Worker } from './scenario.ts'

const WINDOW_MS = 1_000

let scenario: Scenario
afterEach(() => scenario.stop())

/** Processes are all up before there is anything to do: what starting them costs is not the limit's to pay. */
async function start(perSecond: number, processes: number, seconds: number): Promise<Worker[]> {
  scenario = await Scenario.start({
    upstream: true,
    history: false,
    queue: { limits: { queue: `${perSecond}/s` }, leaseMs: 3_000 },
  })
  const starting = Array.from({ length: processes }, () => scenario.worker({ concurrency: 50 }))
  const workers = await Promise.all(starting)
  await scenario.submitted({ count: perSecond * seconds, chunk: 1_000, ids: 'generated' })
  return workers
}

function upstream(): Upstream {
  if (scenario.upstream === undefined) throw new Error('this scenario has no upstream')
  return scenario.upstream
}

async function arrived(count: number): Promise<void> {
  await expect.poll(() => upstream().total(), { timeout: 60_000, interval: 50 }).toBeGreaterThanOrEqual(count)
}

describe('a bucket limit, as the upstream counts', () => {
  for (const permits of [30, 500, 5_000]) {
    for (const processes of [1, 4]) {
      it(`of ${permits}/s is never exceeded and at least nine tenths used by ${processes} processes`, async () => {
        const seconds = 5
        await start(permits, processes, seconds)

        await arrived(permits * seconds)
        const report = await upstream().report({ permits, windowMs: WINDOW_MS })

        expect(report.busiest.count).toBeLessThanOrEqual(permits)
        expect(report.usedShare).toBeGreaterThanOrEqual(0.9)
        expect(report.total).toBe(permits * seconds)
      })
    }

    it(`of ${permits}/s is never exceeded by processes that are stopped and resumed`, async () => {
      const seconds = 4
      const workers = await start(permits, 4, seconds)

      for (const [round, worker] of [...workers, ...workers].entries()) {
        await arrived(Math.floor((permits * seconds * (round + 1)) / 12))
        worker.freeze()
        // Longer than a grant keeps, shorter than a lease.
        await new Promise((resolve) => setTimeout(resolve, 150))
        worker.resume()
      }
      await arrived(permits * seconds)
      const report = await upstream().report({ permits, windowMs: WINDOW_MS })

      expect(report.busiest.count).toBeLessThanOrEqual(permits)
    })
  }
})
