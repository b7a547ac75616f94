import { describe, expect, it } from 'vitest'
import { withResolvers } from '../../test/support/with-resolvers.ts'
import type { Clock } from '../clock.ts'
import { StoreUnavailableError } from '../errors.ts'
import { Recovery } from './recovery.ts'

const LEASE_MS = 15_000
const AT_US = 1_700_000_000_000_000
const unavailable = new StoreUnavailableError({ reason: 'test', outcome: 'unknown' })

/** A process that has run for longer than its start takes. */
function begin() {
  let now = 0
  let outages = 0
  const clock: Clock = { now: () => now, date: () => now, setTimer: () => () => {} }
  const recovery = new Recovery({ clock, leaseMs: LEASE_MS })
  recovery.onOutage(() => {
    outages += 1
  })
  const pass = (ms: number) => {
    now += ms
  }
  pass(100_000)
  const call = (tookMs: number) => recovery.watch(async () => pass(tookMs))
  const failedCall = (afterMs = 0) =>
    recovery
      .watch(async () => {
        pass(afterMs)
        throw unavailable
      })
      .catch(() => {})
  return { recovery, pass, call, failedCall, outages: () => outages }
}

describe('leases that ran out', () => {
  it('are not taken back by a call that has not been told of any', () => {
    expect(begin().recovery.untilUs).toBe(0)
  })

  it('are taken back by the next call where the store answers promptly, for a third of a lease', async () => {
    const { recovery, call } = begin()
    await call(5)

    expect(recovery.left(AT_US)).toBe(0)

    expect(recovery.untilUs).toBe(AT_US + 5_000_000)
  })

  it('are left for a few seconds after a call that was answered late, and their holder is told at once', async () => {
    const { recovery, call, pass, outages } = begin()
    await call(5)
    recovery.left(AT_US)
    await call(20_000)

    expect([recovery.untilUs, outages()]).toEqual([0, 1])
    expect(recovery.left(AT_US)).toBe(5_000)
    pass(5_000)
    expect(recovery.left(AT_US)).toBe(0)
  })

  it('are left after calls that failed for so long, however promptly the next is answered', async () => {
    const { recovery, call, failedCall } = begin()
    await failedCall(LEASE_MS)
    await failedCall()
    await call(5)

    expect(recovery.left(AT_US)).toBe(5_000)
  })

  it('are taken back at once after a failure that nobody’s lease can have run out in', async () => {
    const { recovery, call, failedCall } = begin()
    await failedCall()
    await call(500)

    expect(recovery.left(AT_US)).toBe(0)
  })

  it('are left after a single slow answer, but not where answers are always slow', async () => {
    const { recovery, call, pass } = begin()
    await call(1_500)
    expect(recovery.left(AT_US)).toBe(5_000)
    pass(5_000)

    await call(1_500)

    expect(recovery.left(AT_US)).toBe(0)
  })

  it('are taken back all the same where one answer after the other is late', async () => {
    const { recovery, call, pass } = begin()
    const waits: (number | undefined)[] = []
    for (let calls = 0; calls < 6; calls++) {
      await call(6_000)
      const waitMs = recovery.left(AT_US)
      waits.push(waitMs)
      pass(waitMs ?? 0)
    }

    expect(waits).toEqual([5_000, 5_000, 5_000, 5_000, 5_000, 0])
    await call(6_000)
    expect(recovery.untilUs).toBeUndefined()

    expect(recovery.left(undefined)).toBeUndefined()

    expect(recovery.untilUs).toBe(0)
  })

  it('are taken back all the same by a process whose calls always come too late', () => {
    const { recovery, pass } = begin()
    const grants: (number | undefined)[] = []
    for (let calls = 0; calls < 5; calls++) {
      recovery.left(AT_US)
      grants.push(recovery.untilUs)
      pass(8_000)
    }

    expect(grants.slice(0, 4)).toEqual(Array(4).fill(AT_US + 5_000_000))
    expect(grants[4]).toBeUndefined()
  })

  it('are taken back for five seconds at most, however long a lease is: others may have shorter ones', () => {
    const clock: Clock = { now: () => 0, date: () => 0, setTimer: () => () => {} }
    const recovery = new Recovery({ clock, leaseMs: 3_600_000 })

    recovery.left(AT_US)

    expect(recovery.untilUs).toBe(AT_US + 5_000_000)
  })

  it('are taken back at once after a failure that came later than the answer to a later call', async () => {
    const { recovery, call, pass } = begin()
    const answer = withResolvers<void>()
    const failing = recovery.watch(() => answer.promise)
    pass(10)
    await call(5)
    answer.reject(unavailable)
    await expect(failing).rejects.toBe(unavailable)
    pass(LEASE_MS)
    await call(5)

    expect(recovery.left(AT_US)).toBe(0)
  })
})
