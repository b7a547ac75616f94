import { expect, it } from 'vitest'
import { record } from '../../../test/support/script-store/script-jobs.ts'
import { useScriptStore } from '../../../test/support/script-store/use-script-store.ts'
import { auditDelayed } from './audit-delayed.ts'

const store = useScriptStore()

function audit(isRepairing = true) {
  return auditDelayed(store.requests(), { isRepairing, nowUs: store.nowUs })
}

/** One that waits, one for later. */
async function fill(): Promise<void> {
  await store.submit('a', 1)
  await store.submit('a', 0, { kind: 'later', entries: ['+60000000', '', record(1)] })
}

it('finds nothing in a queue that is as it should be, and changes nothing', async () => {
  await fill()

  const { reply, changes } = await store.changesOf(() => audit())

  expect(reply).toMatchObject({ differences: [], skipped: [] })
  expect(changes).toEqual({})
})

it('counts what is delayed of each tenant, and of all', async () => {
  await fill()
  const [job] = (await store.client.zrange(store.keys().delayed, 0, '0')) as [string]
  await store.client.zadd(store.keys().delayed, 2e9, job.replace(/a$/, 'b'))

  const { reply, changes } = await store.changesOf(() => audit())

  expect(reply).toMatchObject({
    differences: [
      { kind: 'tenant.delayed', subject: 'b', expected: '1', found: '0' },
      { kind: 'queue.delayed', subject: '', expected: '2', found: '1' },
    ],
  })
  expect(Object.keys(changes).sort()).toEqual(['events', 'queue', 'tenant:b'])
  expect(await audit()).toMatchObject({ differences: [] })
})

it('leaves alone what is too much for one script, and says what', async () => {
  const members = Array.from({ length: 1_501 }, (_, at) => [2e9, `normal:default:0${at}:a`]).flat()
  await store.client.zadd(store.keys().delayed, ...members)

  expect(await audit()).toMatchObject({ differences: [], skipped: ['delayed'] })
})

it('only looks when it is told so', async () => {
  await fill()
  await store.client.del(store.keys().delayed)

  const { reply, changes } = await store.changesOf(() => audit(false))

  expect(reply.differences.map(({ kind }) => kind)).toEqual(['queue.delayed'])
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
