import { describe, expect, it } from 'vitest'
import type { Clock } from '../clock.ts'
import { Recovery } from './recovery.ts'

const LEASE_MS = 15_000
const AT_US = 1_700_000_000_000_000

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
  const call = (tookMs: number) => {
    const sentAt = now
    pass(tookMs)
    recovery.answered(sentAt)
  }
  return { recovery, pass, call, now: () => now, outages: () => outages }
}

describe('leases that ran out', () => {
  it('are not taken back by a call that has not been told of any', () => {
    expect(begin().recovery.untilUs).toBe(0)
  })

  it('are taken back by the next call where the store answers promptly, for a third of a lease', () => {
    const { recovery, call } = begin()
    call(5)

    expect(recovery.left(AT_US)).toBe(0)

    expect(recovery.untilUs).toBe(AT_US + 5_000_000)
  })

  it('are left for a few seconds after a call that was answered late, and their holder is told at once', () => {
    const { recovery, call, pass, outages } = begin()
    call(5)
    recovery.left(AT_US)
    call(20_000)

    expect([recovery.untilUs, outages()]).toEqual([0, 1])
    expect(recovery.left(AT_US)).toBe(5_000)
    pass(5_000)
    expect(recovery.left(AT_US)).toBe(0)
  })

  it('are left after calls that failed for so long, however promptly the next is answered', () => {
    const { recovery, call, pass, now } = begin()
    recovery.failed(now())
    pass(LEASE_MS)
    recovery.failed(now())
    call(5)

    expect(recovery.left(AT_US)).toBe(5_000)
  })

  it('are taken back at once after a failure that nobody’s lease can have run out in', () => {
    const { recovery, call, now } = begin()
    recovery.failed(now())
    call(500)

    expect(recovery.left(AT_US)).toBe(0)
  })

  it('are left after a single slow answer, but not where answers are always slow', () => {
    const { recovery, call, pass } = begin()
    call(1_500)
    expect(recovery.left(AT_US)).toBe(5_000)
    pass(5_000)

    call(1_500)

    expect(recovery.left(AT_US)).toBe(0)
  })

  it('are taken back all the same where one answer after the other is late', () => {
    const { recovery, call, pass } = begin()
    const waits: (number | undefined)[] = []
    for (let calls = 0; calls < 6; calls++) {
      call(6_000)
      const waitMs = recovery.left(AT_US)
      waits.push(waitMs)
      pass(waitMs ?? 0)
    }

    expect(waits).toEqual([5_000, 5_000, 5_000, 5_000, 5_000, 0])
    call(6_000)
    expect(recovery.untilUs).toBe(Number.MAX_SAFE_INTEGER)

    expect(recovery.left(undefined)).toBeUndefined()

    expect(recovery.untilUs).toBe(0)
  })

  it('are taken back all the same by a process whose calls always come too late', () => {
    const { recovery, pass } = begin()
    const grants: number[] = []
    for (let calls = 0; calls < 5; calls++) {
      recovery.left(AT_US)
      grants.push(recovery.untilUs)
      pass(8_000)
    }

    expect(grants.slice(0, 4)).toEqual(Array(4).fill(AT_US + 5_000_000))
    expect(grants[4]).toBe(Number.MAX_SAFE_INTEGER)
  })

  it('are taken back for five seconds at most, however long a lease is: others may have shorter ones', () => {
    const clock: Clock = { now: () => 0, date: () => 0, setTimer: () => () => {} }
    const recovery = new Recovery({ clock, leaseMs: 3_600_000 })

    recovery.left(AT_US)

    expect(recovery.untilUs).toBe(AT_US + 5_000_000)
  })

  it('are taken back at once after a failure that came later than the answer to a later call', () => {
    const { recovery, call, pass, now } = begin()
    const sentAt = now()
    pass(10)
    call(5)
    recovery.failed(sentAt)
    pass(LEASE_MS)
    call(5)

    expect(recovery.left(AT_US)).toBe(0)
  })
})
