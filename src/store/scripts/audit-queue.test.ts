import { afterAll, afterEach, beforeAll, beforeEach, expect, it } from 'vitest'
import { record, ScriptStore } from '../../testing/script-store.ts'
import { auditQueue } from './audit-queue.ts'

let store: ScriptStore

beforeAll(async () => {
  store = await ScriptStore.start()
})
beforeEach(() => store.begin())
afterEach(async () => expect(await store.keysMetTooLate()).toEqual([]))
afterAll(() => store.stop())

function audit(isRepairing = true, met: readonly string[] = ['tenant:a']) {
  return auditQueue(store.requests(), { met, isRepairing, nowUs: store.nowUs })
}

/** Two that wait, one that runs, one for later. */
async function fill(): Promise<void> {
  await store.submit('a', 3)
  await store.claim(1)
  await store.submit('a', 0, { kind: 'later', entries: ['+60000000', '', record(1)] })
}

it('finds nothing in a queue that is as it should be, and changes nothing', async () => {
  await fill()

  const { reply, changes } = await store.changesOf(() => audit())

  expect(reply).toEqual({ word: 'audited', differences: [] })
  expect(changes).toEqual({})
})

it('gives a job that is in no place a place', async () => {
  await fill()
  const [job] = (await store.client.zrange(store.keys().delayed, 0, '0')) as [string]
  await store.client.zrem(store.keys().delayed, job)

  const { reply, changes } = await store.changesOf(() => audit())

  expect(reply).toMatchObject({ differences: [{ kind: 'aside.place', subject: job }] })
  expect(changes).toEqual({ delayed: { [job]: 1_000_000_000 } })
  expect(job).toMatch(/^normal:default:0\d+:a$/)
})

it('lets the jobs of a claim without a lease be taken back', async () => {
  await fill()
  await store.client.del(store.keys().leases)

  const { reply, changes } = await store.changesOf(() => audit(true, ['tenant:a', 'claim:1000000000']))

  expect(reply).toMatchObject({ differences: [{ kind: 'claim.lease', subject: '1000000000' }] })
  expect(changes).toEqual({ leases: { '1000000000:audit': 1_000_000_000 } })
})

it('only looks when it is told so', async () => {
  await fill()
  await store.client.del(store.keys().running)

  const { reply, changes } = await store.changesOf(() => audit(false))

  expect(reply).toMatchObject({ differences: [{ kind: 'tenant.running', subject: 'a', expected: '1', found: '0' }] })
  expect(changes).toEqual({})
})

it('leaves alone what is too much for one script, and says what', async () => {
  const met = Array.from({ length: 1_001 }, (_, at) => `tenant:${at}`)

  expect(await audit(true, met)).toEqual({ word: 'skipped', what: 'tenants' })
})

it('runs while Redis is out of memory', async () => {
  await fill()

  expect(await store.outOfMemory(() => audit())).toMatchObject({ differences: [] })
})

it('changes nothing in a store that does not know the queue', async () => {
  await store.empty()

  await expect(audit()).rejects.toThrow('unregistered')
  expect(await store.dump()).toEqual({})
})
