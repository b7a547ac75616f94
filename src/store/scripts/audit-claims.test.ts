import { expect, it } from 'vitest'
import { useScriptStore } from '../../../test/support/script-store/use-script-store.ts'
import { auditClaims } from './audit-claims.ts'

const FENCE = '1000000000'

const store = useScriptStore()

function audit(isRepairing = true) {
  return auditClaims(store.requests(), [FENCE, '999'], { isRepairing, nowUs: store.nowUs })
}

async function fill(): Promise<void> {
  await store.submit('a', 3)
  await store.claim(1)
}

it('finds nothing in a claim that somebody holds, nor in one that is gone, and changes nothing', async () => {
  await fill()

  const { reply, changes } = await store.changesOf(() => audit())

  expect(reply).toEqual({ differences: [], skipped: [], quietMs: 0, lookedAt: 2 })
  expect(changes).toEqual({})
})

it('lets the jobs of a claim without a lease be taken back', async () => {
  await fill()
  await store.client.del(store.keys().leases)

  const { reply, changes } = await store.changesOf(() => audit())

  expect(reply).toMatchObject({ differences: [{ kind: 'claim.lease', subject: FENCE }] })
  expect(changes).toMatchObject({ leases: { [`${FENCE}:audit`]: 1_000_000_000 } })
  expect(Object.keys(changes).sort()).toEqual(['events', 'leases', 'queue'])
})

it('lets a job that runs be delayed no longer', async () => {
  await fill()
  const [job] = (await store.client.hkeys(`${store.keys().queue.slice(0, -'queue'.length)}claim:${FENCE}`)) as [string]
  await store.client.zadd(store.keys().delayed, 2e9, job)

  const { reply, changes } = await store.changesOf(() => audit())

  expect(reply).toMatchObject({ differences: [{ kind: 'delayed.running', subject: job }] })
  expect(changes).toMatchObject({ delayed: null })
})

it('only looks when it is told so', async () => {
  await fill()
  await store.client.del(store.keys().leases)

  const { reply, changes } = await store.changesOf(() => audit(false))

  expect(reply).toMatchObject({ differences: [{ kind: 'claim.lease' }] })
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
