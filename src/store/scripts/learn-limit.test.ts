import { expect, it } from 'vitest'
import { shortly } from '../../../test/support/script-store/script-jobs.ts'
import { beginGroup } from '../../../test/support/script-store/shared-limits.ts'
import { useScriptStore } from '../../../test/support/script-store/use-script-store.ts'
import { acquirePermits } from './acquire-permits.ts'
import { type LimitLesson, learnLimit } from './learn-limit.ts'

const store = useScriptStore()

function acquire(limit = 'queue', level: LimitLesson['level'] = 'normal') {
  const asked = { limits: [limit], level, permits: [1], stale: undefined, nowUs: store.nowUs }
  return acquirePermits(store.requests('caller'), asked)
}

function learn(lesson: Partial<LimitLesson>, requests = store.requests('caller')) {
  const call = { permits: 1, fence: '', pushback: undefined, reading: undefined, nowUs: store.nowUs }
  return learnLimit(requests, { limit: 'queue', level: 'normal', ...call, ...lesson })
}

const reading = { remaining: 10, resetInMs: 60_000, limit: 100 }
const bucket = { kind: 'bucket', limit: 10, windowMs: 1_000, jitterMs: 0 } as const

it('feeds a quota, ends the reservation, and wakes who waits for the answer', async () => {
  await store.begin({ limits: { queue: { kind: 'quota', threshold: 0 } } })
  await store.submit('a', 2)
  await acquire()
  expect(shortly(await store.claim(2, { idleForMs: 5_000 }))).toBe('')

  const { reply, changes } = await store.changesOf(() => learn({ reading }))

  expect(reply).toBe(true)
  expect(changes).toMatchObject({
    limits: { 'queue/queue/quota': '0|,10,1060000000,1000000000,100,0,10', 'queue/queue/quota/reserved': '' },
    'wake:me': ['work'],
  })
  expect(shortly(await store.claim(2))).toBe('a1 a2')
})

it('lets sleepers sleep when nothing is left', async () => {
  await store.begin({ limits: { queue: { kind: 'quota', threshold: 0 } } })
  await store.submit('a', 1)
  await acquire()
  await store.claim(1, { idleForMs: 5_000 })

  const { changes } = await store.changesOf(() => learn({ reading: { ...reading, remaining: 0 } }))

  expect(changes).not.toHaveProperty('wake:me')
})

it('feeds the member of a pool that granted the call', async () => {
  await store.begin({ limits: { queue: { kind: 'quota', threshold: 0, pool: ['x', 'y'] } } })
  await acquire()
  await acquire()

  await learn({ reading, member: 'y' })

  expect((await store.dump()).limits).toMatchObject({
    hash: { 'queue/queue/quota': '0|x,-1,0,0,0,1,0|y,10,1060000000,1000000000,100,0,10' },
  })
})

it('closes a limit whose upstream pushed back, and cuts a bucket once for all earlier grants', async () => {
  await store.begin({ limits: { queue: bucket } })
  await store.submit('a', 1)
  const granted = await acquire()
  const fence = granted.word === 'answers' ? granted.fence : ''
  store.now += 500_000

  await learn({ fence, pushback: { retryAfterMs: 2_000 } })
  await learn({ fence, pushback: { retryAfterMs: 2_000 } })

  expect((await store.dump()).limits).toMatchObject({
    hash: { 'queue/queue/pushed': '1002500000:0.7000:1000500000:1.0000' },
  })
  const closed = await store.claim(1, { idleForMs: 5_000 })
  expect([shortly(closed), closed.waitMs]).toEqual(['', 2_000])
})

it('closes the limit of the level that is named, and knows none of another', async () => {
  await store.begin({ limits: { levels: { low: { few: bucket } } } })

  expect(await learn({ limit: 'few', level: 'low', pushback: { retryAfterMs: 1_000 } })).toBe(true)
  expect((await store.dump()).limits).toMatchObject({
    hash: { 'low/few/pushed': expect.stringMatching(/^1001000000:/) },
  })
  const { reply, changes } = await store.changesOf(() => learn({ limit: 'few' }))
  expect(reply).toBe(false)
  expect(changes).not.toHaveProperty('limits')
})

it('teaches a limit that other queues share for all of them, and wakes those', async () => {
  await beginGroup(store, { kind: 'quota', threshold: 0 }, { a: 1, b: 1 })
  await acquire('upstream')
  await store.claim(1, { idleForMs: 5_000 }, 'worker-b')
  store.use('a')
  await store.claim(1, { idleForMs: 5_000 }, 'worker-a')

  const { changes } = await store.changesOf(() => learn({ limit: 'upstream', reading }))

  expect(changes).toMatchObject({ '@limits': { gitlab: '0|,10,1060000000,1000000000,100,0,10' } })
  expect(shortly(await store.claim(1, {}, 'worker-a'))).toBe('a1')
  store.use('b')
  expect((await store.dump())['wake:worker-b']).toBeDefined()
  expect(shortly(await store.claim(1, {}, 'worker-b'))).toBe('b1')
})

it('changes nothing when it is repeated', async () => {
  await store.begin({ limits: { queue: bucket } })
  await learn({ pushback: { retryAfterMs: 1_000 } })
  store.repeatFrom1('caller')

  const { changes } = await store.changesOf(() => learn({ pushback: { retryAfterMs: 9_000 } }))

  expect(changes).toEqual({})
})

it('learns while Redis is out of memory', async () => {
  await store.begin({ limits: { queue: bucket } })

  expect(await store.outOfMemory(() => learn({ pushback: { retryAfterMs: 1_000 } }))).toBe(true)
})

it('tells a caller who knew the queue before the store was emptied to register, and learns nothing', async () => {
  await store.begin({ limits: { queue: { kind: 'quota' } } })

  const { changes } = await store.changesOf(() =>
    expect(learn({ reading }, store.requestsKnowing('900000000'))).rejects.toThrow('unregistered'),
  )

  expect(changes).toEqual({})
  expect(await learn({ reading }, store.requestsKnowing('1000000000'))).toBe(true)
})
