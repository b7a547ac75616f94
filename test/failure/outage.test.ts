import { afterEach, describe, expect, it } from 'vitest'
import { Trial } from './trial.ts'
import type { Worker } from './worker.ts'

// Calls end while Redis is away, and their leases run out before it is back.
const LEASE_MS = 2_000
const HOLD_MS = 2_500
const CALLS = 30

let trial: Trial
afterEach(() => trial.stop())

interface Outage {
  readonly what: string
  begin(): Promise<void>
  end(): Promise<void>
}

/** Ways to be away. */
const outages: readonly Outage[] = [
  {
    what: 'stands still',
    begin: () => trial.redis.kill('SIGSTOP'),
    end: () => trial.redis.kill('SIGCONT'),
  },
  {
    what: 'is stopped and started again',
    begin: () => trial.redis.kill('SIGTERM'),
    end: () => trial.redis.restart(),
  },
]

async function start(): Promise<void> {
  const redis = { appendonly: true, config: { appendfsync: 'always' } }
  trial = await Trial.start({ redis, upstream: true, queue: { leaseMs: LEASE_MS } })
}

/** In claims of a few calls each: those of which nothing was told before Redis went are the ones in danger. */
async function callInSmallClaims(workers: readonly Worker[]): Promise<void> {
  await trial.submitted({ count: CALLS, chunk: 1, everyMs: 10, holdMs: HOLD_MS })
  await expect.poll(() => told(workers, 'started'), { timeout: 20_000 }).toBe(CALLS)
}

function told(workers: readonly Worker[], what: 'started' | 'ended'): number {
  return workers.flatMap(({ messages }) => messages.filter(({ is }) => is === what)).length
}

/** Nothing announces that a lease ran out, so this one wait is a wait for time. */
function longerThanLease(): Promise<void> {
  return new Promise((resolve) => setTimeout(resolve, LEASE_MS * 1.5))
}

/** Redis is away until these calls have ended and their leases have run out; then all is done that there is. */
async function outlast({ begin, end }: Outage, callsEnd: () => Promise<unknown>): Promise<void> {
  const fault = trial.fault('outage')
  await begin()
  await callsEnd()
  await longerThanLease()
  await end()
  fault.end()
  await trial.drained()
}

/** Calls that the upstream got more than once. */
async function repeated(): Promise<string[]> {
  const calls = (await trial.upstream?.arrivals()) ?? []
  return calls.map(({ job }) => job).filter((job, at, all) => all.indexOf(job) !== at)
}

for (const outage of outages) {
  describe(`a Redis that ${outage.what} for longer than a lease`, () => {
    it('has the calls that end meanwhile made once by a worker that lives', async () => {
      await start()
      const worker = await trial.worker({ concurrency: CALLS })
      await callInSmallClaims([worker])

      await outlast(outage, () => worker.ended(CALLS))

      expect(await repeated()).toEqual([])
      await trial.expectPromisesKept()
    })

    it('has them made once by workers that are back one after the other, beside one that has nothing to do', async () => {
      await start()
      const workers = await Promise.all([1, 2].map(() => trial.worker({ concurrency: CALLS / 2 })))
      await callInSmallClaims(workers)
      await trial.worker()

      await outlast(outage, () => expect.poll(() => told(workers, 'ended'), { timeout: 20_000 }).toBe(CALLS))

      expect(await repeated()).toEqual([])
      await trial.expectPromisesKept()
    })

    it('gives back the calls of a worker that is killed −9 meanwhile, and only those', async () => {
      await start()
      const workers = await Promise.all([1, 2].map(() => trial.worker({ concurrency: CALLS / 2 })))
      const [victim, heir] = workers as [Worker, Worker]
      await callInSmallClaims(workers)
      const lost = (await victim.started(0)).sort()

      await outlast(outage, async () => {
        trial.fault('kill', victim)
        await victim.end('SIGKILL')
        await heir.ended(CALLS - lost.length)
      })

      expect((await repeated()).sort()).toEqual(lost)
      await trial.expectPromisesKept({ livenessMs: 15_000 })
    })
  })
}
