import { expect, it } from 'vitest'
import { finishedAs, shortly } from '../../../test/support/script-store/script-jobs.ts'
import type { ScriptStore } from '../../../test/support/script-store/script-store.ts'
import { beginGroup, sharedLimit } from '../../../test/support/script-store/shared-limits.ts'
import { useScriptStore } from '../../../test/support/script-store/use-script-store.ts'
import { acquireShared } from './acquire-shared.ts'
import type { ClaimReply } from './finish-and-claim.ts'
import { renewLeases } from './renew-leases.ts'

const store = useScriptStore()

function claimOf(queue: string, wanted: number, claim: Parameters<ScriptStore['claim']>[1] = {}): Promise<ClaimReply> {
  store.use(queue)
  return store.claim(wanted, claim, `worker-${queue}`)
}

function finishOf(queue: string, claimed: ClaimReply, wanted = 0): Promise<ClaimReply> {
  return claimOf(queue, wanted, { finished: finishedAs(claimed, { outcome: 'succeeded' }), idleForMs: 5_000 })
}

const slots = (max: number) => ({ kind: 'concurrency', max }) as const
const perSecond = { kind: 'bucket', limit: 2, windowMs: 1_000, burst: 1, jitterMs: 0 } as const

it('grants one bucket to whichever queue asks first, and keeps its state in the group', async () => {
  await beginGroup(store, perSecond, { a: 2, b: 2 })

  const { reply: first, changes } = await store.changesOf(() => claimOf('b', 2))
  const second = await claimOf('a', 2, { idleForMs: 5_000 })

  expect(shortly(first)).toBe('b1')
  expect(changes).toMatchObject({
    '@limits': {
      gitlab: '1000500000:1000000000:0',
      'gitlab/jitter': '0:1000000000:1:0:1000000000',
      'gitlab/running': '1',
      'gitlab/running/b': '1',
    },
  })
  expect([shortly(second), second.waitMs]).toEqual(['', 500])
})

it('reads no group where a queue shares nothing', async () => {
  await store.begin({ limits: { queue: perSecond } })
  await store.submit('a', 1)

  const { changes } = await store.changesOf(() => store.claim(1))

  expect(Object.keys(changes).filter((key) => key.startsWith('@'))).toEqual([])
})

it('gives an unused permit back to the shared bucket', async () => {
  await beginGroup(store, perSecond, { a: 2 })
  const claimed = await claimOf('a', 1)

  await claimOf('a', 0, { finished: finishedAs(claimed, { outcome: 'returned' }) })

  expect(shortly(await claimOf('a', 1))).toBe('a1')
})

it('closes the limit for every queue after a restart that one of them has noticed', async () => {
  await beginGroup(store, perSecond, { a: 1, b: 1 })
  store.serverId = 'server-2'

  const noticed = await claimOf('a', 1, { idleForMs: 5_000 })
  store.now += 900_000
  const other = await claimOf('b', 1, { idleForMs: 5_000 })
  store.now += 100_000

  expect([shortly(noticed), noticed.waitMs]).toEqual(['', 1_000])
  expect([shortly(other), other.waitMs]).toEqual(['', 100])
  expect(shortly(await claimOf('b', 1))).toBe('b1')
})

it('counts jobs in flight over all queues, and a lease that runs out frees its slot', async () => {
  await beginGroup(store, slots(2), { a: 2, b: 2 })
  await claimOf('a', 1)
  expect(shortly(await claimOf('b', 2))).toBe('b1')
  expect(shortly(await claimOf('a', 1))).toBe('')

  store.now += 15_000_000
  const taken = await claimOf('b', 2)

  // Its own job that stalled goes first. Of the other queue nobody has come to take its job back.
  expect(shortly(taken)).toBe('b1 b2')
  const running = { 'gitlab/running': '2', 'gitlab/running/a': '0', 'gitlab/running/b': '2' }
  expect((await store.dump())['@limits']).toMatchObject({ hash: running })
})

it('counts what a queue has in flight as long as its leases are renewed, and again when one is that had run out', async () => {
  await beginGroup(store, slots(1), { a: 1, b: 1 })
  store.use('a')
  const renewal = { client: 'worker-a', leaseMs: 15_000, fences: [(await claimOf('a', 1)).fence] }
  store.now += 14_000_000
  await renewLeases(store.redis, store.keys(), { ...renewal, nowUs: store.nowUs })
  store.now += 14_000_000
  expect(shortly(await claimOf('b', 1))).toBe('')
  store.now += 5_000_000
  await claimOf('b', 0)

  store.use('a')
  const { changes } = await store.changesOf(() =>
    renewLeases(store.redis, store.keys(), { ...renewal, nowUs: store.nowUs }),
  )

  expect(changes['@limits']).toEqual({ 'gitlab/running': '1', 'gitlab/running/a': '1' })
  expect(shortly(await claimOf('b', 1))).toBe('')
})

it('leaves it in the count for a caller that may not take back leases, and tells it so', async () => {
  await beginGroup(store, slots(1), { a: 1, b: 1 })
  await claimOf('a', 1)
  store.now += 15_000_000
  store.use('b')

  const { reply, changes } = await store.changesOf(() => claimOf('b', 1, { takesBackUntilUs: store.now - 1 }))
  const later = await claimOf('b', 1, { takesBackUntilUs: store.now })

  expect([shortly(reply), reply.leftAtUs]).toEqual(['', store.now])
  expect(changes['@limits']).toEqual({ 'gitlab/waiting': '|b,1015000000' })
  expect([shortly(later), later.leftAtUs]).toEqual(['b1', undefined])
})

it('looks at the leases of other queues every five seconds', async () => {
  await beginGroup(store, slots(9), { a: 1, b: 1 })
  await claimOf('a', 1)
  await claimOf('b', 1)
  store.now += 4_999_999
  const early = await store.changesOf(() => claimOf('b', 0))
  store.now += 1
  const due = await store.changesOf(() => claimOf('b', 0))

  expect([early.changes['@limits'], due.changes['@limits']]).toEqual([undefined, { 'gitlab/looked_at': '1005000000' }])
})

it('wakes a queue that waits for a slot when another queue frees one', async () => {
  await beginGroup(store, slots(1), { a: 1, b: 1 })
  const claimed = await claimOf('a', 1)
  await claimOf('b', 1, { idleForMs: 5_000 })
  store.use('b')
  expect((await store.dump())['@limits']).toMatchObject({ hash: { 'gitlab/waiting': '|b,1000000000' } })

  await finishOf('a', claimed)

  store.use('b')
  expect((await store.dump())['wake:worker-b']).toMatchObject({ list: ['work'] })
  expect(shortly(await claimOf('b', 1))).toBe('b1')
  expect((await store.dump())['@limits']).toMatchObject({ hash: { 'gitlab/waiting': '' } })
})

it('leaves a freed slot to a queue that waits where there are fewer slots than queues, but not for ever', async () => {
  await beginGroup(store, slots(1), { a: 3, b: 1 })
  const claimed = await claimOf('a', 1)
  await claimOf('b', 1, { idleForMs: 5_000 })

  const next = await finishOf('a', claimed, 1)
  expect([shortly(next), next.waitMs]).toEqual(['', 20])

  store.now += 20_000
  expect(shortly(await claimOf('a', 1))).toBe('a2')
})

it('holds a queue to an equal part of the slots while others wait, and to no part once their marks are old', async () => {
  await beginGroup(store, slots(4), { a: 9, b: 9 })
  const four = await claimOf('a', 4)
  await claimOf('b', 4, { idleForMs: 5_000 })
  expect(shortly(four)).toBe('a1 a2 a3 a4')

  expect(shortly(await finishOf('a', four, 4))).toBe('a5 a6')
  expect(shortly(await claimOf('a', 1))).toBe('')

  // Nobody of the other queue has come by: its process is gone.
  store.now += 14_900_000
  const renewed = await claimOf('a', 1)
  store.now += 100_000
  expect([shortly(renewed), shortly(await claimOf('a', 1, { leaseMs: 60_000 }))]).toEqual(['', 'a5'])
})

it('lets the first call of a quota ask for all queues, and wakes them when it is answered', async () => {
  await beginGroup(store, { kind: 'quota', threshold: 0 }, { a: 2, b: 2 })
  const probe = await claimOf('a', 2)
  const waiting = await claimOf('b', 2, { idleForMs: 5_000 })
  expect([shortly(probe), shortly(waiting)]).toEqual(['a1', ''])

  const lesson = { upstream: 'upstream', pushback: undefined, reading: { remaining: 1, resetInMs: 60_000, limit: 10 } }
  const finished = finishedAs(probe, { outcome: 'succeeded' }).map((each) => ({ ...each, lesson }))
  await claimOf('a', 0, { finished })

  store.use('b')
  expect((await store.dump())['wake:worker-b']).toMatchObject({ list: ['work'] })
  expect(shortly(await claimOf('b', 2))).toBe('b1')
})

it('asks to be registered again when the store has lost a shared limit', async () => {
  await beginGroup(store, perSecond, { a: 1 })
  await store.client.del('test:{gitlab}:@limits')

  await expect(claimOf('a', 1)).rejects.toThrow('unregistered')
})

it('closes the limit once for all queues of an emptied store, whoever has made it known again', async () => {
  await beginGroup(store, perSecond, { a: 2, b: 1 })
  await claimOf('b', 1)
  store.now += 2_000_000
  store.use('a')
  await store.register({ limits: { upstream: sharedLimit(perSecond) } }, '900000000')
  const closed = await claimOf('a', 1, { idleForMs: 5_000 })
  store.now += 1_000_000
  store.use('b')
  await store.register({ limits: { upstream: sharedLimit(perSecond) } }, '900000000')
  store.use('a')

  const open = await claimOf('a', 1)

  expect([shortly(closed), closed.waitMs]).toEqual(['', 1_000])
  expect(shortly(open)).toBe('a1')
})

it('counts only the jobs of the levels it is attached to', async () => {
  await store.empty()
  store.group = 'gitlab'
  store.use('a')
  const gitlab = sharedLimit(slots(1))
  await store.register({ limits: { levels: { high: { gitlab }, low: { gitlab } } } })
  await store.submit('n', 2)
  await store.submit('h', 1, { level: 'high' })
  await store.submit('l', 1, { level: 'low' })

  expect(shortly(await claimOf('a', 9))).toBe('h1 n1 n2')
})

it('charges a caller without a queue and the queues from one bucket', async () => {
  await beginGroup(store, perSecond, { a: 1 })

  const asked = { limits: ['gitlab'], level: 'normal', permits: [1], stale: undefined, nowUs: store.nowUs } as const
  const reply = await acquireShared(store.groupRequests(), asked)

  expect(reply).toMatchObject({ word: 'answers', answers: [{ isGranted: true }] })
  expect(shortly(await claimOf('a', 1))).toBe('')
})

it('makes a job that was pushed back wait by what the limit lets its queue do', async () => {
  await beginGroup(store, { kind: 'bucket', limit: 10, windowMs: 1_000, jitterMs: 0 }, { a: 51 })

  const claimed = await claimOf('a', 1)
  const { changes } = await store.changesOf(() =>
    claimOf('a', 0, { finished: finishedAs(claimed, { outcome: 'throttled', delayMs: undefined }) }),
  )

  expect(Object.values(changes.delayed as Record<string, number>)).toEqual([store.now + 6_000_000])
})
