import { expect, it } from 'vitest'
import { shortly } from '../../../test/support/script-store/script-jobs.ts'
import { beginGroup } from '../../../test/support/script-store/shared-limits.ts'
import { useScriptStore } from '../../../test/support/script-store/use-script-store.ts'
import { parseLimit } from '../../limits/definition.ts'
import type { AcquireRequest } from './acquire-permits.ts'
import { acquireShared } from './acquire-shared.ts'
import { learnShared } from './learn-shared.ts'
import { registerLimits } from './register-limits.ts'

const store = useScriptStore()

const slow = { kind: 'bucket', limit: 10, windowMs: 1_000, burst: 2, jitterMs: 0 } as const
const daily = { kind: 'window', limit: 3, windowMs: 86_400_000 } as const
const tokens = { kind: 'quota', threshold: 0, pool: ['x', 'y'] } as const

async function begin(definitions: Record<string, Parameters<typeof parseLimit>[1]>, knewSince = ''): Promise<void> {
  await store.empty()
  store.group = 'gitlab'
  const rules = Object.fromEntries(Object.entries(definitions).map(([name, each]) => [name, parseLimit(name, each)]))
  await registerLimits(store.redis, store.groupRequests().keys, rules, { knewSince, nowUs: store.nowUs })
}

function ask(permits: number[], request: Partial<AcquireRequest> = {}, requests = store.groupRequests()) {
  const asked = { limits: ['slow'], level: 'normal', permits, stale: undefined, nowUs: store.nowUs } as const
  return acquireShared(requests, { ...asked, ...request })
}

/** What callers in a row got: how many of them `yes` and what remains after the last, or how long to wait in ms. */
async function answersTo(permits: number[], request: Partial<AcquireRequest> = {}): Promise<string[]> {
  const reply = await ask(permits, request)
  if (reply.word !== 'answers') return [reply.word]
  return reply.answers.map(({ callers, isGranted, remaining, waitUs }) => {
    const count = callers > 1 ? `${callers} × ` : ''
    return count + (isGranted ? `yes ${remaining}` : `${waitUs / 1000} ms`)
  })
}

it('answers many callers in one call, in their order, and those alike together', async () => {
  await begin({ slow })

  const { reply, changes } = await store.changesOf(() => answersTo([1, 1, 1, 1]))

  expect(reply).toEqual(['2 × yes 0', '2 × 111.112 ms'])
  expect(changes).toEqual({
    '@client:caller': { '(expires)': true, '1': '1' },
    '@limits': { slow: '1000222224:1000000000:0', 'slow/jitter': '0:1000000000:2:0:1000000000' },
  })
})

it('grants a smaller caller what is too little for those before it', async () => {
  await begin({ daily })

  expect(await answersTo([2, 2, 2, 1, 1], { limits: ['daily'] })).toMatchObject([
    'yes 1',
    expect.stringMatching(/^2 × .* ms$/),
    'yes 0',
    expect.stringMatching(/^\d.* ms$/),
  ])
})

it.each([
  ['a bucket', { kind: 'bucket', limit: 30, windowMs: 1_000, burst: 10, jitterMs: 50 }],
  ['a window', { kind: 'window', limit: 10, windowMs: 86_400_000, jitterMs: 50 }],
] as const)('charges %s for callers together as for one after the other', async (_, definition) => {
  const answersOneByOne: string[] = []
  await begin({ slow: definition })
  for (let caller = 0; caller < 6; caller++) answersOneByOne.push(...(await answersTo([2])))
  const { '@limits': oneByOne } = await store.dump()

  await begin({ slow: definition })
  const together = await answersTo([2, 2, 2, 2, 2, 2])

  expect(together).toEqual([`5 × ${answersOneByOne[4]}`, answersOneByOne[5]])
  expect((await store.dump())['@limits']).toEqual(oneByOne)
})

it('charges a quota for callers together, once it is known what is left', async () => {
  await begin({ left: { kind: 'quota', threshold: 0 } })
  const asked = { limits: ['left'] }
  expect(await answersTo([1, 1, 1], asked)).toEqual(['yes undefined', '2 × 60000 ms'])
  const reading = { remaining: 3, resetInMs: 600_000, limit: 10 }
  const lesson = { limit: 'left', permits: 1, fence: '', pushback: undefined, reading, nowUs: store.nowUs }
  await learnShared(store.groupRequests(), lesson)

  expect(await answersTo([1, 1, 1, 1], asked)).toEqual(['3 × yes 0', '600000 ms'])
  expect((await store.dump())['@limits']).toMatchObject({ hash: { 'left/reserved': '|1000,3,' } })
})

it('lets nobody who asks by hand wait for a quota for less than a second', async () => {
  await begin({ left: { kind: 'quota', threshold: 0 }, slow })
  const reading = { remaining: 0, resetInMs: 5, limit: 10 }
  const lesson = { limit: 'left', permits: 1, fence: '', pushback: undefined, reading, nowUs: store.nowUs }
  await learnShared(store.groupRequests(), lesson)

  expect(await answersTo([1], { limits: ['left'] })).toEqual(['1000 ms'])
  expect(await answersTo([1, 4], { limits: ['slow'] })).toEqual(['yes 1', '333.336 ms'])
  expect(await answersTo([4], { limits: ['left', 'slow'] })).toEqual(['1000 ms'])
})

it('charges all limits or none', async () => {
  await begin({ slow, daily })
  const both = { limits: ['slow', 'daily'] }
  expect(await answersTo([2], both)).toEqual(['yes 0'])
  store.now += 1_000_000

  const [refused] = await answersTo([2], both)

  expect(refused).toMatch(/ms$/)
  expect(await answersTo([2])).toEqual(['yes 0'])
})

it('saves up for more than the burst, and refuses what could never be granted', async () => {
  await begin({ slow, daily })

  expect(await answersTo([2])).toEqual(['yes 0'])
  expect(await answersTo([4])).toEqual(['444.448 ms'])
  expect(await ask([1, 11])).toEqual({ word: 'costly', limit: 'slow', most: 10 })
  expect(await ask([1], { limits: ['none'] }).catch((error: Error) => error.message)).toBe('unregistered')
})

it('refuses low callers until the instant a refused high caller was told, and lets normal ones pass', async () => {
  await begin({ slow })
  await answersTo([1, 1])

  expect(await answersTo([2], { level: 'high' })).toEqual(['222.224 ms'])
  store.now += 150_000
  expect(await answersTo([1], { level: 'low' })).toEqual(['82.224 ms'])
  expect(await answersTo([1], { level: 'normal' })).toEqual(['yes 0'])
  store.now += 200_000
  expect(await answersTo([1], { level: 'low' })).toEqual(['yes 1'])
})

it('answers a repeated call as before and charges nothing', async () => {
  await begin({ slow })
  const first = await ask([1])
  store.repeatFrom1('caller')

  const { reply, changes } = await store.changesOf(() => ask([1]))

  expect(reply).toEqual(first)
  expect(changes).toEqual({})
})

it('takes back what came too late, and widens the jitter by it', async () => {
  await begin({ slow: { ...slow, jitterMs: 10 } })
  const late = await ask([1, 1])
  const fence = late.word === 'answers' ? late.fence : ''

  const again = await ask([1, 1], { stale: { fence, permits: 2, members: [] } })

  expect(again).toMatchObject({ word: 'answers', freshMs: 6, answers: [{ callers: 2, isGranted: true }] })
  const { '@limits': hash } = await store.dump()
  expect(hash).toMatchObject({ hash: { 'slow/jitter': '10000:1000000000:4:2:1000000000' } })
})

it('takes back from a pool what its members had granted too late: they are free to ask at once', async () => {
  await begin({ slow: { ...slow, jitterMs: 10 }, tokens })
  const both = { limits: ['slow', 'tokens'] }
  const late = await ask([1, 1], both)
  const fence = late.word === 'answers' ? late.fence : ''
  const members = ['x', 'y'].map((member) => ({ limit: 'tokens', member, permits: 1 }))

  const again = await ask([1, 1], { ...both, stale: { fence, permits: 2, members } })

  expect(again).toMatchObject({ answers: [{ grant: { tokens: 'x' } }, { grant: { tokens: 'y' } }] })
  expect((await store.dump())['@limits']).toMatchObject({
    hash: { tokens: '0|x,-1,0,0,0,1,0|y,-1,0,0,0,1,0', 'tokens/reserved': '|1000,1,x|1000,1,y' },
  })
})

it('names the member of a pool, and counts it as in flight until a minute has passed', async () => {
  await begin({ tokens })

  const first = await ask([1, 1, 1], { limits: ['tokens'] })
  expect(first).toMatchObject({
    answers: [{ grant: { tokens: 'x' } }, { grant: { tokens: 'y' } }, { isGranted: false, waitUs: 60_000_000 }],
  })
  expect((await store.dump())['@limits']).toMatchObject({
    hash: { tokens: '0|x,-1,0,0,0,1,0|y,-1,0,0,0,1,0', 'tokens/reserved': '|1000,1,x|1000,1,y' },
  })

  store.now += 60_000_000
  expect(await answersTo([1], { limits: ['tokens'] })).toEqual(['yes undefined'])
  expect((await store.dump())['@limits']).toMatchObject({
    hash: { tokens: '0|x,-1,0,0,0,1,0|y,-1,0,0,0,0,0', 'tokens/reserved': '|1060,1,x' },
  })
})

it('holds no slot of a limit that counts jobs in flight', async () => {
  await begin({ slots: { kind: 'concurrency', max: 1 } })

  expect(await ask([1], { limits: ['slots'] })).toEqual({ word: 'slots', limit: 'slots' })
})

it('closes after a restart that it is the first to notice', async () => {
  await begin({ slow })
  store.serverId = 'server-2'

  expect(await answersTo([1])).toEqual(['1000 ms'])
})

it('has two seconds of a long window as used after a restart, and what has passed of it where the store had lost it', async () => {
  const hourly = { kind: 'window', limit: 100, windowMs: 3_600_000 } as const
  await begin({ hourly })
  store.serverId = 'server-2'
  const restarted = await answersTo([1], { limits: ['hourly'] })
  await begin({ hourly }, '900000000')

  // 0.06 rounded up; 1,000 s of 3,600.
  expect(restarted).toEqual(['yes 98'])
  expect(await answersTo([1], { limits: ['hourly'] })).toEqual(['yes 71'])
})

it('leaves the queues what it does not take', async () => {
  await beginGroup(store, slow, { a: 2 })
  expect(await answersTo([1], { limits: ['gitlab'] })).toEqual(['yes 1'])

  expect(shortly(await store.claim(2))).toBe('a1')
})

it('runs while Redis is out of memory', async () => {
  await begin({ slow })

  expect(await store.outOfMemory(() => answersTo([1]))).toEqual(['yes 1'])
})

it('tells a caller who knew the group before the store was emptied to register, and neither grants nor learns', async () => {
  await begin({ slow })
  const before = store.groupRequestsKnowing('900000000')
  const lesson = { limit: 'slow', permits: 1, fence: '', pushback: { retryAfterMs: 5 }, reading: undefined }

  const { changes } = await store.changesOf(async () => {
    await expect(ask([1], {}, before)).rejects.toThrow('unregistered')
    await expect(learnShared(before, { ...lesson, nowUs: store.nowUs })).rejects.toThrow('unregistered')
  })

  expect(changes).toEqual({})
  expect(await ask([1], {}, store.groupRequestsKnowing('1000000000'))).toMatchObject({ answers: [{ isGranted: true }] })
})

it('remembers a call for many permits: no more than the limit in a second', async () => {
  await begin({ slow })
  let granted = 0

  for (let ms = 0; ms < 1_000; ms += 10) {
    const permits = ms === 0 ? 10 : 1
    const reply = await ask([permits])
    if (reply.word === 'answers' && reply.answers[0]?.isGranted) granted += permits
    store.now += 10_000
  }

  expect(granted).toBe(10)
})
