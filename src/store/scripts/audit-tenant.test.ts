import { afterAll, afterEach, beforeAll, beforeEach, expect, it } from 'vitest'
import { ScriptStore } from '../../testing/script-store.ts'
import { auditTenant } from './audit-tenant.ts'

let store: ScriptStore

beforeAll(async () => {
  store = await ScriptStore.start()
})
beforeEach(() => store.begin())
afterEach(async () => expect(await store.keysMetTooLate()).toEqual([]))
afterAll(() => store.stop())

function audit(isRepairing: boolean, lanes: readonly string[] = []) {
  return auditTenant(store.requests(), 'a', { lanes, isRepairing, nowUs: store.nowUs })
}

it('finds nothing in a tenant that is as it should be, and changes nothing', async () => {
  await store.submit('a', 2)
  await store.submit('a', 1, { lane: 'named' })
  await store.claim(1)

  const { reply, changes } = await store.changesOf(() => audit(true))

  expect(reply).toEqual([])
  expect(changes).toEqual({})
})

it('puts a tenant back in line that stands in no set', async () => {
  await store.submit('a', 2)
  await store.client.del(store.keys().readyNormal, store.keys().sinceNormal)

  const { reply, changes } = await store.changesOf(() => audit(true))

  expect(reply?.map(({ kind }) => kind)).toEqual(['ready.normal.missing', 'since.normal.missing'])
  expect(changes).toEqual({ 'ready:normal': { a: 1_000_000_001 }, 'since:normal': { a: 1_000_000_000 } })
})

it('only looks when it is told so', async () => {
  await store.submit('a', 2)
  await store.client.del(store.keys().readyNormal)

  const { reply, changes } = await store.changesOf(() => audit(false))

  expect(reply).toEqual([{ kind: 'ready.normal.missing', subject: 'a', expected: '1000000001', found: 'none' }])
  expect(changes).toEqual({})
})

it('counts the jobs of a lane that nothing but its key leads to', async () => {
  await store.submit('a', 2, { lane: 'named' })
  const start = store.keys().queue.slice(0, -'queue'.length)
  await store.client.del(`${start}tenant:a`, `${start}lanes:a`, store.keys().readyNormal, store.keys().sinceNormal)

  await audit(true, ['normal:named'])

  expect(await audit(true, ['normal:named'])).toEqual([])
  expect((await store.claim(2)).jobs).toHaveLength(4)
})

it('runs while Redis is out of memory', async () => {
  await store.submit('a', 1)

  expect(await store.outOfMemory(() => audit(true))).toEqual([])
})

it('changes nothing in a store that does not know the queue', async () => {
  await store.empty()

  await expect(audit(true)).rejects.toThrow('unregistered')
  expect(await store.dump()).toEqual({})
})
