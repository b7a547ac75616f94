import { expect, it } from 'vitest'
import type { Clock } from '../clock.ts'
import { StoreUnavailableError } from '../errors.ts'
import type { Redis } from '../store/redis.ts'
import type { Requests } from '../store/requests.ts'
import { LeaseKeeper } from './lease-keeper.ts'
import type { LogEntry } from './log.ts'
import { Recovery } from './recovery.ts'

/** Renews once for each of these errors, and answers what was said about it. */
async function logOf(errors: Error[]): Promise<LogEntry[]> {
  const log: LogEntry[] = []
  await new Promise<void>((resolve) => {
    const clock = {
      now: () => 0,
      setTimer: (fn: () => void) => {
        if (errors.length > 0) setImmediate(fn)
        else resolve()
        return () => {}
      },
    } as unknown as Clock
    const callWith = () => Promise.reject(errors.shift())
    const requests = { client: 'me', keys: { leases: 'leases' } } as unknown as Requests
    const keeper = new LeaseKeeper({
      ...{ clock, requests, leaseMs: 300, queue: 'q', onLost: () => {} },
      recovery: new Recovery({ clock, leaseMs: 300 }),
      redis: { callWith } as unknown as Redis,
      log: (entry) => log.push(entry),
    })
    keeper.hold('7', 1)
  })
  return log
}

it('says once that leases cannot be renewed, and goes on trying', async () => {
  const refused = new Error('NOPERM this user has no permissions to run the command')

  expect(await logOf([refused, refused])).toMatchObject([
    { level: 'error', event: 'worker.leases-unrenewed', message: expect.stringContaining('NOPERM') },
  ])
})

it('says nothing of a store that is away', async () => {
  expect(await logOf([new StoreUnavailableError({ reason: 'test', outcome: 'not-sent' })])).toEqual([])
})

/** Renewals wait until they are answered; timers go off by hand. */
function begin() {
  const answers: (() => void)[] = []
  const timers: (() => void)[] = []
  const clock = {
    now: () => 0,
    setTimer: (fn: () => void) => {
      timers.push(fn)
      return () => {}
    },
  } as unknown as Clock
  const callWith = () => new Promise((resolve) => answers.push(() => resolve(['renewed', []])))
  const keeper = new LeaseKeeper({
    ...{ clock, leaseMs: 300, queue: 'q', onLost: () => {}, log: () => {} },
    requests: { client: 'me', keys: { leases: 'leases' } } as unknown as Requests,
    recovery: new Recovery({ clock, leaseMs: 300 }),
    redis: { callWith } as unknown as Redis,
  })
  return { keeper, answers, timers }
}

it('renews one at a time, whoever asks', async () => {
  const { keeper, answers } = begin()
  keeper.hold('7', 1)

  const renewals = [keeper.renew(), keeper.renew()]
  expect(answers).toHaveLength(1)
  answers[0]?.()
  await Promise.all(renewals)
  void keeper.renew()

  expect(answers).toHaveLength(2)
})

it('holds nothing any more once it is closed', async () => {
  const { keeper, answers, timers } = begin()
  keeper.close()

  keeper.hold('7', 1)
  await keeper.renew()

  expect([answers.length, timers.length]).toEqual([0, 0])
})
