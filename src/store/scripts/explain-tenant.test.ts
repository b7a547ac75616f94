import { expect, it } from 'vitest'
import { record } from '../../../test/support/script-store/script-jobs.ts'
import { useScriptStore } from '../../../test/support/script-store/use-script-store.ts'
import { changeTenant } from './change-tenant.ts'
import { explainTenant } from './explain-tenant.ts'
import { renewLeases } from './renew-leases.ts'

const store = useScriptStore()

function explain(tenant: string) {
  return explainTenant(store.requests(), tenant, store.nowUs)
}

it('says what every gate sees, and changes nothing', async () => {
  await store.submit('a', 4)
  await store.claim(1, {}, 'worker')
  store.now += 61_000_000

  const { reply, changes } = await store.changesOf(() => explain('a'))

  expect(reply).toEqual({
    facts: {
      closed_limits: {},
      level: 'normal',
      cost: 1,
      now: 1_061_000,
      queue: { levels_paused: {}, last_claim: 1_000_000, max_wait: 60_000 },
      workers: { idle: 0, busy: 1, running: 1 },
      tenant: {
        waiting: 3,
        delayed: 0,
        running: 1,
        weight: 1,
        base: 0,
        stands: [
          {
            level: 'normal',
            lanes: 1,
            lane: 'default',
            score: 1_000_000,
            since: 1_000_000,
            in_line: true,
            rank: 0,
            ready: 1,
            overdue: true,
          },
        ],
      },
    },
    limits: [],
  })
  expect(changes).toEqual({})
})

it('says since when a limit has parked a tenant, however long it was in line before', async () => {
  await store.begin({ limits: { tenant: { kind: 'concurrency', max: 1 } } })
  await store.submit('a', 1)
  await store.claim(1)
  await store.submit('a', 1)
  store.now += 5_000_000
  await store.claim(1)
  store.now += 2_000_000

  const { facts, limits } = await explain('a')

  expect(facts.tenant.parked).toEqual({ limit: 'tenant', since: 1_005_000, is_lifted: false })
  expect(limits).toMatchObject([{ scope: 'tenant', kind: 'concurrency', available: 0 }])
})

it('says since when slots of a level are full: since the last claim on that level, whatever was claimed on others', async () => {
  await store.begin({ limits: { levels: { low: { kind: 'concurrency', max: 1 } } } })
  await store.submit('a', 2, { level: 'low' })
  await store.submit('b', 1, { level: 'high' })
  await store.claim(1, { levels: 'low' })
  store.now += 1_000_000
  await store.claim(1, { levels: 'high' })

  const { facts } = await explain('a')

  expect(facts.closed_limits).toEqual({ 'low/low': 1_000_000 })
})

it('says so by the claim that came last, although the lease of an earlier one was renewed since', async () => {
  await store.begin({ limits: { levels: { low: { kind: 'concurrency', max: 2 } } } })
  await store.submit('a', 3, { level: 'low' })
  const first = await store.claim(1)
  store.now += 1_000_000
  await store.claim(1)
  store.now += 1_000_000
  const renewal = { client: 'me', fences: [first.fence], leaseMs: 15_000, nowUs: store.nowUs }
  await renewLeases(store.redis, store.keys(), renewal)

  const { facts } = await explain('a')

  expect(facts.closed_limits).toEqual({ 'low/low': 1_001_000 })
})

it('says so by the level that a job stood on, which for a tenant with an override is not its own', async () => {
  await store.begin({ limits: { levels: { low: { kind: 'concurrency', max: 1 } } } })
  await changeTenant(store.requests(), 'a', { level: 'low' }, store.nowUs)
  await store.submit('a', 2)
  await store.submit('b', 1)
  await store.claim(1, { levels: 'low' })
  store.now += 1_000_000
  await store.claim(1, { levels: 'normal' })

  const { facts } = await explain('a')

  expect(facts.closed_limits).toEqual({ 'low/low': 1_000_000 })
})

it('asks for what the next job costs: one that came back, or else the first of the lane whose turn it is', async () => {
  await store.begin({ limits: { queue: { kind: 'window', limit: 10, windowMs: 1_000, offsetMs: 0, jitterMs: 0 } } })
  await store.submit('a', 0, { entries: [`*7;${record(1)}`, `*4;${record(2)}`, `*2;${record(3)}`] })
  const claim = await store.claim(1)

  const second = await explain('a')
  await store.finish(claim, { outcome: 'released' })
  const first = await explain('a')

  expect(second.facts).toMatchObject({ cost: 4, closed_limits: { 'queue/queue': 1_000_000 } })
  expect(second.limits).toMatchObject([{ available: 3, opensInUs: 1_000_000 }])
  expect(first.facts.cost).toBe(7)
})

it('asks for the first job of the highest level where an override has put all on one', async () => {
  await store.begin({ limits: { levels: { low: { kind: 'window', limit: 10, windowMs: 1_000 } } } })
  await changeTenant(store.requests(), 'a', { level: 'low' }, store.nowUs)
  await store.submit('a', 0, { entries: [`*3;${record(1)}`] })
  await store.submit('a', 0, { level: 'high', entries: [`*5;${record(2)}`] })

  expect((await explain('a')).facts).toMatchObject({ level: 'low', cost: 5 })
})

it('knows a tenant that never was as one with nothing', async () => {
  const { facts } = await store.outOfMemory(() => explain('nobody'))

  expect(facts.tenant).toMatchObject({ waiting: 0, delayed: 0, running: 0, stands: {} })
})

it('changes nothing in a store that does not know the queue', async () => {
  await store.empty()

  await expect(explain('a')).rejects.toThrow('unregistered')
  expect(await store.dump()).toEqual({})
})
