import { describe, expect, it } from 'vitest'
import { finishedAs } from '../../../test/support/script-store/script-jobs.ts'
import { beginGroup, sharedLimit } from '../../../test/support/script-store/shared-limits.ts'
import { useScriptStore } from '../../../test/support/script-store/use-script-store.ts'
import { changeTenant } from './change-tenant.ts'
import { readCongestion } from './read-congestion.ts'

const store = useScriptStore()

const SECOND = 1_000_000

async function of(tenant: string) {
  const { tenants } = await readCongestion(store.requests(), { tenant }, store.nowUs)
  return tenants[0]
}

async function ofQueue() {
  return (await readCongestion(store.requests(), { most: 1 }, store.nowUs)).queue
}

/** So many jobs start in each of the next seconds. */
async function start(perSecond: number, seconds: number): Promise<void> {
  for (let second = 0; second < seconds; second++) {
    store.now += SECOND
    const claim = await store.claim(perSecond)
    await store.finish(claim, { outcome: 'succeeded' })
  }
}

describe('the speed of a tenant', () => {
  it('is its share of what the queue may do until it has had work for ten seconds', async () => {
    await store.begin({ limits: { queue: '100/s' } })
    for (const other of ['b', 'c', 'd', 'e']) await store.submit(other, 1)
    await store.submit('a', 101)

    expect(await of('a')).toMatchObject({ waiting: 101, speed: 20, isMeasured: false, backoffMs: 6_000 })
  })

  it('is by weight among all who are in line or parked, and never more than its own limits grant', async () => {
    await store.begin({ limits: { queue: '100/s', tenant: '40/s' } })
    await changeTenant(store.requests(), 'a', { weight: 3 }, store.nowUs)
    await store.submit('a', 9)
    await store.submit('b', 9)

    expect(await of('a')).toMatchObject({ speed: 40 })
    expect(await of('b')).toMatchObject({ speed: 25 })

    await store.claim(4, { levels: 'normal' })

    expect(await of('b')).toMatchObject({ speed: 25 })
  })

  it('is that of one tenant also where it has work on two levels', async () => {
    await store.begin({ limits: { queue: '100/s' } })
    await store.submit('a', 9, { level: 'high' })
    await store.submit('a', 9, { level: 'low' })

    expect(await of('a')).toMatchObject({ speed: 100 })
  })

  it('is its share of a limit that the queue has in common with others', async () => {
    await beginGroup(store, '100/s', { q: 500 })
    await store.submit('b', 1)

    expect(await of('q')).toMatchObject({ waiting: 500, speed: 50, isMeasured: false, backoffMs: 11_000 })
  })

  it('is at least 1 while it is expected', async () => {
    await store.begin({ limits: { tenant: '2/h' } })
    await store.submit('a', 9)

    expect(await of('a')).toMatchObject({ speed: 1, isMeasured: false })
  })

  describe('under a window', () => {
    const daily = (limit: number) => ({ kind: 'window', limit, windowMs: 86_400_000 }) as const

    it.each([
      ['its own', { tenant: { calls: '50/s', daily: daily(10_000) } }],
      ['the queue’s', { queue: { calls: '50/s', daily: daily(10_000) } }],
    ])('that has room for its backlog is what the others allow: %s', async (_, limits) => {
      await store.begin({ limits })
      await store.submit('a', 250)

      expect(await of('a')).toMatchObject({ speed: 50, isMeasured: false, backoffMs: 6_000 })
      expect(await ofQueue()).toMatchObject({ isMeasured: false })
    })

    it('that has not is by when it begins anew, less what is used of it', async () => {
      await store.begin({ limits: { tenant: { calls: '50/s', hourly: { ...daily(30), windowMs: 3_600_000 } } } })
      store.now += 2_596 * SECOND
      await store.submit('a', 20)
      const roomy = await of('a')
      await store.finish(await store.claim(15), { outcome: 'succeeded' })
      await store.submit('a', 25)

      // The hour ends 4 s from now: 50/s grants one at a time, and of 29 left 44 wait.
      expect(roomy).toMatchObject({ speed: 50 })
      expect(await of('a')).toMatchObject({ waiting: 44, speed: 11 })
    })

    it('that the queue has in common with others slows it down like one of its own', async () => {
      await beginGroup(store, { ...daily(100), windowMs: 10_000 }, { q: 200 })

      // 100 now, 100 in 10 s.
      expect(await of('q')).toMatchObject({ waiting: 200, speed: 20 })
    })

    describe('whose count the store had lost', () => {
      // Half of it has passed: 500 of 1,000 count as used, and 600 wait.
      const halfOver = { kind: 'window', limit: 1_000, windowMs: 120_000 } as const

      it('is by what is assumed of it', async () => {
        await store.empty()
        store.now += 20 * SECOND
        await store.register({ limits: { queue: { calls: '50/s', halfOver } } }, '1')
        await store.submit('a', 600)

        expect(await ofQueue()).toMatchObject({ speed: 10 })
        expect(await of('a')).toMatchObject({ speed: 10 })
      })

      it('is by what is assumed of one that the queue has in common with others', async () => {
        await store.empty()
        store.now += 20 * SECOND
        store.group = 'gitlab'
        await store.register({ limits: { queue: { calls: '50/s', halfOver: sharedLimit(halfOver) } } }, '1')
        await store.submit('a', 600)

        expect(await ofQueue()).toMatchObject({ speed: 10 })
        expect(await of('a')).toMatchObject({ speed: 10 })
      })
    })
  })

  it('is what has started so far where no limit says what to expect', async () => {
    await store.submit('a', 100)
    await start(10, 4)

    expect(await of('a')).toMatchObject({ speed: 10, isMeasured: false })
  })

  it('is what has started in the last ten seconds, however long it has been at work', async () => {
    await store.submit('a', 700)
    await start(10, 30)
    await start(20, 14)
    // The end of a slot of time: a start at its very beginning would count in two windows that touch.
    store.now += SECOND - 1

    expect(await of('a')).toMatchObject({ waiting: 120, speed: 20, isMeasured: true, backoffMs: 7_000 })
  })

  it('falls to nothing when nothing starts any more, and counts as 1 then', async () => {
    await store.submit('a', 150)
    await start(10, 12)
    store.now += 15 * SECOND

    expect(await of('a')).toMatchObject({ waiting: 30, speed: 0, isMeasured: true, backoffMs: 31_000 })
  })

  it('is measured anew when the tenant has work again after it had none', async () => {
    await store.submit('a', 120)
    await start(10, 12)
    await store.submit('a', 30)

    expect(await of('a')).toMatchObject({ waiting: 30, isMeasured: false })
  })
})

describe('the backoff', () => {
  it('is the shortest one when congestion is switched off', async () => {
    await store.begin({ congestion: { enabled: false, baseBackoffMs: 700 } })
    await store.submit('a', 500)

    expect(await of('a')).toMatchObject({ backoffMs: 700 })
  })

  it('is never longer than the longest', async () => {
    await store.begin({ congestion: { maxBackoffMs: 4_000 } })
    await store.submit('a', 500)

    expect(await of('a')).toMatchObject({ backoffMs: 4_000 })
  })
})

describe('the statistics of a tenant', () => {
  it('count one throttle each time a limit parks it', async () => {
    await store.begin({ limits: { tenant: '10/s' } })
    await store.submit('a', 5)

    await store.claim(5)
    await store.claim(5)
    store.now += SECOND
    await store.claim(5)

    expect(await of('a')).toMatchObject({ throttles: 2, throttledAt: 1_001_000, lastBackoffMs: 0 })
  })

  it('count one throttle for each job that an upstream pushes back, and jobs that have ended', async () => {
    await store.submit('a', 4)
    const claim = await store.claim(4)
    const [first, second, third, fourth] = finishedAs(claim, { outcome: 'succeeded' })
    if (!first || !second || !third || !fourth) throw new Error('four jobs were claimed')

    await store.claim(0, {
      finished: [
        { ...first, finish: { outcome: 'throttled', delayMs: 7_000 } },
        { ...second, finish: { outcome: 'dead', reason: 'throttled', error: '{"name":"E","message":"x"}' } },
        third,
      ],
    })

    expect(await of('a')).toMatchObject({ throttles: 2, throttledAt: 1_000_000, lastBackoffMs: 7_000, finished: 2 })
  })
})

it('shows the queue, and those of its tenants that have longest to wait', async () => {
  await store.begin({ limits: { queue: '100/s' } })
  await store.submit('few', 3)
  await store.submit('many', 900)
  await store.submit('some', 40)
  await changeTenant(store.requests(), 'paused', { paused: true }, store.nowUs)
  await store.submit('paused', 100)
  await store.submit('none', 1)
  await store.claim(1)

  const reply = await readCongestion(store.requests(), { most: 3 }, store.nowUs)

  expect(reply.tenants.map(({ tenant }) => tenant)).toEqual(['many', 'paused', 'some'])
  expect(reply.queue).toMatchObject({ waiting: 1_043, activeTenants: 4, speed: 100, backoffMs: 11_000 })
})

it('finds the tenants with most backlog among many without looking at all of them', async () => {
  for (let at = 0; at < 300; at++) await store.submit(`t${at}`, 9)
  for (const large of ['x', 'y', 'z']) await store.submit(large, 100)

  const reply = await readCongestion(store.requests(), { most: 3 }, store.nowUs)

  expect(reply.tenants.map(({ tenant }) => tenant)).toEqual(['x', 'y', 'z'])
})

it('changes nothing, also for a tenant that it does not know', async () => {
  const { reply, changes } = await store.changesOf(() => of('nobody'))

  expect(reply).toMatchObject({ waiting: 0, throttles: 0, finished: 0, backoffMs: 1_000 })
  expect(changes).toEqual({})
})
