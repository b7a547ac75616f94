import { expect, it } from 'vitest'
import { shortly } from '../../../test/support/script-store/script-jobs.ts'
import { beginGroup } from '../../../test/support/script-store/shared-limits.ts'
import { useScriptStore } from '../../../test/support/script-store/use-script-store.ts'
import { acquireShared } from './acquire-shared.ts'
import { learnShared, type SharedLesson } from './learn-shared.ts'

const store = useScriptStore()

function acquire() {
  const asked = { limits: ['gitlab'], level: 'normal', permits: [1], stale: undefined, nowUs: store.nowUs } as const
  return acquireShared(store.groupRequests(), asked)
}

function learn(lesson: Partial<SharedLesson>) {
  const plain = { limit: 'gitlab', permits: 1, fence: '', pushback: undefined, reading: undefined, nowUs: store.nowUs }
  return learnShared(store.groupRequests(), { ...plain, ...lesson })
}

const reading = { remaining: 10, resetInMs: 60_000, limit: 100 }

it('feeds a quota, ends the reservation, and wakes a queue that waits for the answer', async () => {
  await beginGroup(store, { kind: 'quota', threshold: 0 }, { a: 2 })
  await acquire()
  await store.claim(1, { idleForMs: 5_000 })
  expect((await store.dump())['@limits']).toMatchObject({ hash: { 'gitlab/reserved': '|1000,1,' } })

  await learn({ reading })

  expect((await store.dump())['@limits']).toMatchObject({
    hash: { gitlab: '0|,10,1060000000,1000000000,100,0,10', 'gitlab/reserved': '' },
  })
  expect(Object.keys(await store.dump())).toContain('wake:me')
  expect(shortly(await store.claim(2))).toBe('a1 a2')
})

it('keeps what others have reserved of a pool', async () => {
  await beginGroup(store, { kind: 'quota', threshold: 0, pool: ['x', 'y'] }, { a: 0 })
  await acquire()
  await acquire()

  await learn({ reading, member: 'y' })

  expect((await store.dump())['@limits']).toMatchObject({
    hash: { gitlab: '0|x,-1,0,0,0,1,0|y,10,1060000000,1000000000,100,0,10', 'gitlab/reserved': '|1000,1,x' },
  })
})

it('closes a limit whose upstream pushed back for every queue, and cuts a bucket once for all earlier grants', async () => {
  await beginGroup(store, { kind: 'bucket', limit: 10, windowMs: 1_000, jitterMs: 0 }, { a: 1 })
  const granted = await acquire()
  const fence = granted.word === 'answers' ? granted.fence : ''
  store.now += 500_000

  await learn({ fence, pushback: { retryAfterMs: 2_000 } })
  await learn({ fence, pushback: { retryAfterMs: 2_000 } })

  expect((await store.dump())['@limits']).toMatchObject({
    hash: { 'gitlab/pushed': '1002500000:0.7000:1000500000:1.0000' },
  })
  const closed = await store.claim(1, { idleForMs: 5_000 })
  expect([shortly(closed), closed.waitMs]).toEqual(['', 2_000])
})

it('changes nothing when it is repeated', async () => {
  await beginGroup(store, '10/s', { a: 0 })
  await learn({ pushback: { retryAfterMs: 1_000 } })
  store.repeatFrom1('caller')

  const { changes } = await store.changesOf(() => learn({ pushback: { retryAfterMs: 9_000 } }))

  expect(changes).toEqual({})
})
