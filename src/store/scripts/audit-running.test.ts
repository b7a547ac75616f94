import { expect, it } from 'vitest'
import { useScriptStore } from '../../../test/support/script-store/use-script-store.ts'
import { auditRunning } from './audit-running.ts'

const store = useScriptStore()

function audit(isRepairing = true) {
  return auditRunning(store.requests(), { isRepairing, nowUs: store.nowUs })
}

/** Two that wait, one that runs. */
async function fill(): Promise<void> {
  await store.submit('a', 3)
  await store.claim(1)
}

it('finds nothing in a queue that is as it should be, and changes nothing', async () => {
  await fill()

  const { reply, changes } = await store.changesOf(() => audit())

  expect(reply).toEqual({ differences: [], skipped: [], quietMs: 0 })
  expect(changes).toEqual({})
})

it('counts what runs of each tenant', async () => {
  await fill()
  await store.client.hset(store.keys().running, 'a', 5, 'b', 1)

  const { reply, changes } = await store.changesOf(() => audit())

  expect(reply).toMatchObject({
    differences: [
      { kind: 'tenant.running', subject: 'a', expected: '1', found: '5' },
      { kind: 'tenant.running', subject: 'b', expected: '0', found: '1' },
    ],
  })
  expect(changes).toMatchObject({ running: { a: '1', b: null } })
})

it('takes a job out of the later of two claims', async () => {
  await fill()
  const [job, text] = Object.entries(
    await store.client.hgetall(`${store.keys().queue.slice(0, -5)}claim:1000000000`),
  )[0] as [string, string]
  await store.client.hset(`${store.keys().queue.slice(0, -5)}claim:2000000000`, job, text)
  await store.client.zadd(store.keys().leases, 9e15, '2000000000:other')

  expect(await audit()).toMatchObject({ differences: [{ kind: 'claim.twice', subject: job }] })
  expect(await audit()).toMatchObject({ differences: [] })
})

it('leaves alone what is too much for one script, and says what', async () => {
  await fill()
  const members = Array.from({ length: 501 }, (_, at) => [9e15, `${at + 1}:other`]).flat()
  await store.client.zadd(store.keys().leases, ...members)

  expect(await audit()).toMatchObject({ differences: [], skipped: ['claims'] })
})

it('only looks when it is told so', async () => {
  await fill()
  await store.client.del(store.keys().running)

  const { reply, changes } = await store.changesOf(() => audit(false))

  expect(reply).toMatchObject({ differences: [{ kind: 'tenant.running', subject: 'a', expected: '1', found: '0' }] })
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
