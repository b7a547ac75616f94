import { afterEach, describe, expect, it } from 'vitest'
import { goFirst } from '../../src/testing/go-first.ts'
import type { Upstream } from '../support/upstream.ts'
import { Trial } from './trial.ts'
import type { Worker } from './worker.ts'

const WINDOW_MS = 1_000
const ROUNDS = 4

let trial: Trial
afterEach(() => trial.stop())

/** Processes are all up before there is anything to do: what starting them costs is not the limit's to pay. */
async function start(permits: number, processes: number): Promise<Worker[]> {
  trial = await Trial.start({
    upstream: true,
    history: false,
    queue: { limits: { queue: `${permits}/s` }, leaseMs: 3_000 },
  })
  goFirst(trial.redis.pid)
  const starting = Array.from({ length: processes }, () => trial.worker({ concurrency: 50, goesFirst: true }))
  return Promise.all(starting)
}

function upstream(): Upstream {
  if (trial.upstream === undefined) throw new Error('this trial has no upstream')
  return trial.upstream
}

async function arrived(count: number): Promise<void> {
  await expect.poll(() => upstream().total(), { timeout: 60_000, interval: 50 }).toBeGreaterThanOrEqual(count)
}

/** A round of calls, from an empty queue to an empty queue, as the upstream saw it. */
async function round(permits: number, calls: number, during: () => Promise<void> = async () => {}) {
  await upstream().forget()
  const jobs = Array.from({ length: calls }, (_, i) => ({ tenant: `t${i % 3}`, payload: { name: `call-${i}` } }))
  await trial.queue.submit({ type: 'CALL', jobs })
  await during()
  await arrived(calls)
  return upstream().report({ permits, windowMs: WINDOW_MS })
}

describe('a bucket limit, as the upstream counts', () => {
  for (const permits of [30, 500, 5_000]) {
    for (const processes of [1, 4]) {
      it(`of ${permits}/s is never exceeded and at least nine tenths used by ${processes} processes`, async () => {
        await start(permits, processes)

        // A machine with two cores has other things to do now and then; the limit holds also then, its use does not.
        const shares: number[] = []
        do {
          const { busiest, usedShare } = await round(permits, permits * 4)
          expect(busiest.count).toBeLessThanOrEqual(permits)
          shares.push(usedShare)
        } while (Math.max(...shares) < 0.9 && shares.length < ROUNDS)

        expect(Math.max(...shares), `shares used: ${shares.join(', ')}`).toBeGreaterThanOrEqual(0.9)
      })
    }

    it(`of ${permits}/s is never exceeded by processes that are stopped and resumed`, async () => {
      const workers = await start(permits, 4)
      const calls = permits * 4

      const { busiest } = await round(permits, calls, async () => {
        for (const [stop, worker] of [...workers, ...workers].entries()) {
          await arrived(Math.floor((calls * (stop + 1)) / 12))
          worker.freeze()
          // Longer than a grant keeps, shorter than a lease.
          await new Promise((resolve) => setTimeout(resolve, 150))
          worker.resume()
        }
      })

      expect(busiest.count).toBeLessThanOrEqual(permits)
    })
  }
})
