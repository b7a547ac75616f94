import { expect, it } from 'vitest'
import { useScriptStore } from '../../../test/support/script-store/use-script-store.ts'
import { auditWaiting } from './audit-waiting.ts'

const store = useScriptStore()

function audit(isRepairing = true) {
  return auditWaiting(store.requests(), { isRepairing, nowUs: store.nowUs })
}

async function fill(): Promise<void> {
  await store.submit('a', 3)
  await store.submit('b', 1)
  await store.claim(1)
}

it('finds nothing in a queue that is as it should be, and changes nothing', async () => {
  await fill()

  const { reply, changes } = await store.changesOf(() => audit())

  expect(reply).toEqual({ differences: [], skipped: [], quietMs: 0 })
  expect(changes).toEqual({})
})

it('counts a tenant that stands nowhere because its ordered lane waits for a job', async () => {
  await store.submit('a', 2, { lane: '!one' })
  await store.claim(1)
  expect(await store.client.exists(store.keys().readyNormal)).toBe(0)

  expect(await audit()).toMatchObject({ differences: [] })
})

it('puts the sums of all tenants right', async () => {
  await fill()
  await store.client.eval(
    "local v = { cmsgpack.unpack(redis.call('HGET', KEYS[1], 'state')) } v[6] = 9 v[16] = 5 v[19] = 7 redis.call('HSET', KEYS[1], 'state', cmsgpack.pack(unpack(v)))",
    1,
    store.keys().queue,
  )

  const { reply, changes } = await store.changesOf(() => audit())

  expect(reply).toMatchObject({
    differences: [
      { kind: 'queue.waiting', expected: '3', found: '9' },
      { kind: 'queue.weights.parked', expected: '0', found: '7' },
      { kind: 'queue.weights.normal', expected: '2000', found: '5' },
    ],
  })
  expect(Object.keys(changes).sort()).toEqual(['events', 'queue'])
  expect(await audit()).toMatchObject({ differences: [] })
})

it('leaves alone what is too much for one script, and says what', async () => {
  const members = Array.from({ length: 1_501 }, (_, at) => [1, `t${at}`]).flat()
  await store.client.zadd(store.keys().readyNormal, ...members)

  expect(await audit()).toMatchObject({ differences: [], skipped: ['tenants'] })
})

it('only looks when it is told so', async () => {
  await fill()
  await store.client.del(store.keys().readyNormal)

  const { reply, changes } = await store.changesOf(() => audit(false))

  expect(reply.differences.map(({ kind }) => kind)).toContain('queue.weights.normal')
  expect(changes).toEqual({})
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
