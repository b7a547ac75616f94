import { expect, it } from 'vitest'
import { record } from '../../../test/support/script-store/script-jobs.ts'
import { useScriptStore } from '../../../test/support/script-store/use-script-store.ts'
import { auditPlaces, type WalkedPlaces } from './audit-places.ts'

const store = useScriptStore()

function audit(what: WalkedPlaces = 'aside', isRepairing = true) {
  return auditPlaces(store.requests(), { what, cursor: '0' }, { isRepairing, nowUs: store.nowUs })
}

/** Two that wait, one that runs, one for later, one that came back. */
async function fill(): Promise<void> {
  await store.submit('a', 3)
  await store.claim(1)
  await store.submit('a', 0, { kind: 'later', entries: ['+60000000', '', record(1)] })
}

async function firstDelayed(): Promise<string> {
  return (await store.client.zrange(store.keys().delayed, 0, '0'))[0] as string
}

it.each(['leases', 'delayed', 'aside', 'dead', 'letters'] as const)(
  'finds nothing among %s that are as they should be',
  async (what) => {
    await fill()

    const { reply, changes } = await store.changesOf(() => audit(what))

    expect(reply).toEqual({ differences: [], skipped: [], quietMs: 0, cursor: '0' })
    expect(changes).toEqual({})
  },
)

it('gives a job that is in no place a place', async () => {
  await fill()
  const job = await firstDelayed()
  await store.client.zrem(store.keys().delayed, job)

  const { reply, changes } = await store.changesOf(() => audit())

  expect(reply).toMatchObject({ differences: [{ kind: 'aside.place', subject: job }] })
  expect(changes).toMatchObject({ delayed: { [job]: 1_000_000_000 } })
  expect(Object.keys(changes).sort()).toEqual(['delayed', 'events', 'queue'])
})

it('leaves a record alone that may belong to a list that is being freed', async () => {
  const job = 'normal:@x:0000000001:a'
  await store.client.hset(store.keys().aside, job, record(1))
  await store.client.zadd(store.keys().duties, 1, 'free:1')

  expect(await audit()).toMatchObject({ differences: [] })
  await store.client.del(store.keys().duties)
  expect(await audit()).toMatchObject({ differences: [{ kind: 'aside.place', subject: job }] })
})

it('lets a delayed job without a record go, and counts it as canceled', async () => {
  await fill()
  const job = await firstDelayed()
  await store.client.hdel(store.keys().aside, job)

  const { reply, changes } = await store.changesOf(() => audit('delayed'))

  expect(reply).toMatchObject({ differences: [{ kind: 'delayed.record', subject: job }] })
  expect(changes).toMatchObject({ delayed: null, queue: { canceled: '1' } })
})

it('ends a lease that holds nothing', async () => {
  await fill()
  await store.client.zadd(store.keys().leases, 9e15, '1:gone')

  const { changes } = await store.changesOf(() => audit('leases'))

  expect(changes).toMatchObject({ leases: { '1:gone': null } })
})

it('puts both halves of a dead letter right', async () => {
  await store.client.zadd(store.keys().dead, 1, 'normal:default:5:a')
  await store.client.hset(store.keys().deadJobs, 'normal:default:6:a', `1,failed\n${record(1)}`)

  await audit('dead')
  await audit('letters')

  expect(await store.client.zrange(store.keys().dead, 0, '-1')).toEqual(['normal:default:6:a'])
})

it('only looks when it is told so', async () => {
  await fill()
  await store.client.zrem(store.keys().delayed, await firstDelayed())

  const { reply, changes } = await store.changesOf(() => audit('aside', false))

  expect(reply).toMatchObject({ differences: [{ kind: 'aside.place' }] })
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
