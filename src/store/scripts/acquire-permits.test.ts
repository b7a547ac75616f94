import { expect, it } from 'vitest'
import { shortly } from '../../../test/support/script-store/script-jobs.ts'
import { useScriptStore } from '../../../test/support/script-store/use-script-store.ts'
import { type AcquireRequest, acquirePermits } from './acquire-permits.ts'

const store = useScriptStore()

const slow = { kind: 'bucket', limit: 10, windowMs: 1_000, burst: 2, jitterMs: 0 } as const

function ask(permits: number[], request: Partial<AcquireRequest> = {}, requests = store.requests('caller')) {
  const asked = { limits: ['queue'], level: 'normal', permits, stale: undefined, nowUs: store.nowUs } as const
  return acquirePermits(requests, { ...asked, ...request })
}

it('charges a limit of the queue, and counts what it granted and denied', async () => {
  await store.begin({ limits: { queue: slow } })
  await store.submit('a', 1)

  const { reply, changes } = await store.changesOf(() => ask([2, 1, 1]))

  expect(reply).toEqual({
    word: 'answers',
    fence: '1000000000',
    freshMs: undefined,
    answers: [
      { callers: 1, isGranted: true, waitUs: 0, remaining: 0, grant: {} },
      { callers: 2, isGranted: false, waitUs: 111_112, remaining: 0, grant: {} },
    ],
  })
  expect(changes).toMatchObject({
    limits: { 'queue/queue': '1000222224:1000000000:0' },
    queue: { 'granted:queue/queue': '2', 'denied:queue/queue/rate': '2' },
  })
  expect(shortly(await store.claim(1))).toBe('')
})

it('charges a limit of the level that is named, and no other level’s', async () => {
  await store.begin({
    limits: { queue: slow, levels: { low: { few: { kind: 'window', limit: 1, windowMs: 1_000 } } } },
  })

  expect(await ask([1], { limits: ['few'] })).toEqual({ word: 'unknown', limit: 'few' })
  const both = { limits: ['queue', 'few'], level: 'low' } as const
  expect(await ask([1, 1], both)).toMatchObject({ answers: [{ isGranted: true }, { isGranted: false }] })
})

it('keeps the mark of a refused high caller beside the limit', async () => {
  await store.begin({ limits: { queue: slow } })
  await ask([2])
  await ask([1], { level: 'high' })

  expect((await store.dump()).limits).toMatchObject({ hash: { 'queue/queue/high': '1000111112:10/1000000/2' } })
  store.now += 100_000
  expect(await ask([1], { level: 'low' })).toMatchObject({ answers: [{ isGranted: false, waitUs: 21_112 }] })
})

it('forgets the mark of a refused high caller when the limit has changed since: its instant means nothing any more', async () => {
  await store.begin({ limits: { queue: { kind: 'window', limit: 1, windowMs: 86_400_000 } } })
  await ask([1])
  await ask([1], { level: 'high' })
  expect(await ask([1], { level: 'low' })).toMatchObject({ answers: [{ isGranted: false }] })

  await store.register({ limits: { queue: { kind: 'window', limit: 9, windowMs: 86_400_000 } } })

  expect(await ask([1], { level: 'low' })).toMatchObject({ answers: [{ isGranted: true }] })
})

it.each([
  ['a window begins at another hour', { offsetMs: 54_000_000 }],
  ['a window goes by another time zone, where midnight is at 15:00', { timeZone: 'Asia/Tokyo' }],
])('forgets it also when %s', async (_, change) => {
  const daily = { kind: 'window', limit: 1, windowMs: 86_400_000 } as const
  await store.begin({ limits: { queue: daily } })
  await ask([1])
  await ask([1], { level: 'high' })
  await store.register({ limits: { queue: { ...daily, ...change } } })
  const early = await ask([1], { level: 'low' })
  store.now = 54_000_000_000

  expect(early).toMatchObject({ answers: [{ isGranted: false, waitUs: 53_000_000_000 }] })
  expect(await ask([1], { level: 'low' })).toMatchObject({ answers: [{ isGranted: true }] })
})

it('takes back from a quota what it granted too late: the next caller is the one that asks', async () => {
  await store.begin({ limits: { queue: { rate: slow, left: { kind: 'quota' } } } })
  const both = { limits: ['rate', 'left'] }
  const late = await ask([1], both)
  const fence = late.word === 'answers' ? late.fence : ''

  const again = await ask([1], { ...both, stale: { fence, permits: 1, members: [] } })

  expect(again).toMatchObject({ word: 'answers', answers: [{ isGranted: true }] })
  expect(await ask([1], both)).toMatchObject({ answers: [{ isGranted: false, waitUs: 60_000_000 }] })
})

it('reserves of a quota for a minute', async () => {
  await store.begin({ limits: { queue: { kind: 'quota' } } })

  await ask([1])

  expect((await store.dump()).limits).toMatchObject({
    hash: { 'queue/queue/quota': '0|,-1,0,0,0,1,0', 'queue/queue/quota/reserved': '|1000,1,' },
  })
  await store.submit('a', 1)
  const waiting = await store.claim(1, { idleForMs: 5_000 })
  expect([shortly(waiting), waiting.waitMs]).toEqual(['', 60_000])
})

it('tells a queue that is not known', async () => {
  await store.empty()

  await expect(ask([1])).rejects.toThrow('unregistered')
})

it('tells a caller who knew the queue before the store was emptied to register, and grants nothing', async () => {
  await store.begin({ limits: { queue: slow } })

  const { changes } = await store.changesOf(() =>
    expect(ask([1], {}, store.requestsKnowing('900000000'))).rejects.toThrow('unregistered'),
  )

  expect(changes).toEqual({})
  expect(await ask([1], {}, store.requestsKnowing('1000000000'))).toMatchObject({ answers: [{ isGranted: true }] })
})

it('remembers a call for many permits: no more than the limit in a second', async () => {
  await store.begin({ limits: { queue: slow } })
  let granted = 0

  for (let ms = 0; ms < 1_000; ms += 10) {
    const permits = ms === 0 ? 10 : 1
    const reply = await ask([permits])
    if (reply.word === 'answers' && reply.answers[0]?.isGranted) granted += permits
    store.now += 10_000
  }

  expect(granted).toBe(10)
})
