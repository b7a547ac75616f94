import { describe, expect, it } from 'vitest'
import type { Clock } from '../../clock.ts'
import { DutyLease } from './duty-lease.ts'

/** Rings when it is told to; at most one timer is set at a time. */
class ManualClock implements Clock {
  timer: (() => void) | undefined

  now(): number {
    return 0
  }

  date(): number {
    return 0
  }

  setTimer(fn: () => void): () => void {
    if (this.timer) throw new Error('a second timer')
    this.timer = fn
    return () => {
      this.timer = undefined
    }
  }

  ring(): void {
    const { timer } = this
    this.timer = undefined
    timer?.()
  }
}

/** A lease whose renewals are answered by hand. */
function held() {
  const clock = new ManualClock()
  const renewals: { fence: string; resolve: (fence: string | undefined) => void; reject: (error: Error) => void }[] = []
  const renew = (fence: string) =>
    new Promise<string | undefined>((resolve, reject) => renewals.push({ fence, resolve, reject }))
  const lost = { times: 0 }
  const onLost = () => {
    lost.times += 1
  }
  return { clock, renewals, lost, lease: new DutyLease({ clock, leaseMs: 3_000, fence: '1', renew, onLost }) }
}

const settled = () => new Promise((resolve) => setImmediate(resolve))

describe('the lease of a duty', () => {
  it('is renewed under the fence of the renewal before', async () => {
    const { clock, renewals, lease } = held()

    clock.ring()
    renewals[0]?.resolve('2')
    await settled()
    clock.ring()
    renewals[1]?.resolve('3')

    expect(await lease.release()).toBe('3')
    expect(renewals.map(({ fence }) => fence)).toEqual(['1', '2'])
  })

  it('waits for a renewal under way before it is released, and is not renewed after it', async () => {
    const { clock, renewals, lease } = held()

    clock.ring()
    const released = lease.release()
    renewals[0]?.resolve('2')

    expect(await released).toBe('2')
    expect(clock.timer).toBeUndefined()
  })

  it('is not renewed again once it is lost, and says so', async () => {
    const { clock, renewals, lost } = held()

    clock.ring()
    renewals[0]?.resolve(undefined)
    await settled()

    expect(clock.timer).toBeUndefined()
    expect(lost.times).toBe(1)
  })

  it('is renewed again when the store could not be asked', async () => {
    const { clock, renewals, lease } = held()

    clock.ring()
    renewals[0]?.reject(new Error('cut off'))
    await settled()
    clock.ring()
    renewals[1]?.resolve('2')

    expect(await lease.release()).toBe('2')
  })
})
