import { expect, it } from 'vitest'
import { useScriptStore } from '../../../test/support/script-store/use-script-store.ts'
import type { LetterPlace } from '../letter-place.ts'
import type { LetterFilter, LetterSearch, SearchReply } from '../letter-search.ts'
import { sweepDeadLetters } from './sweep-dead-letters.ts'

const store = useScriptStore()

const start = { died: '0', jobKey: '' }
const any: LetterFilter = { tenant: '', type: '', action: '', reason: '', error: '' }

/** Letters of one tenant that die now. */
async function bury(
  tenant: string,
  count: number,
  message = 'no',
  reason: 'failed' | 'stalled' = 'failed',
): Promise<void> {
  await store.submit(tenant, count)
  const claim = await store.claim(count, {}, 'worker')
  await store.finish(claim, { outcome: 'dead', reason, error: JSON.stringify({ name: 'Error', message }) }, 'worker')
}

function sweep(verb: 'retry' | 'discard', search: Partial<LetterSearch> = {}) {
  const whole = { after: start, to: '', filter: any, looks: 100, most: 100, nowUs: store.nowUs, ...search }
  return sweepDeadLetters(store.requests(), verb, whole)
}

it('lets the jobs that fit run again, and leaves the others', async () => {
  await bury('a', 1)
  await bury('b', 1)
  store.now += 1_000_000

  const { reply, changes } = await store.changesOf(() => sweep('retry', { filter: { ...any, tenant: 'a' } }))

  expect(reply).toEqual({ looked: 2, taken: 1, last: undefined, to: '1001000000', left: 1 })
  expect(changes).toEqual({
    aside: { 'normal:default:1000000000:a': '0,0,0,0,retry,|rs|SEND|||1' },
    'client:me': { '(expires)': true, '1': '1' },
    dead: { 'normal:default:1000000000:a': null },
    'dead:jobs': { 'normal:default:1000000000:a': null },
    delayed: { 'normal:default:1000000000:a': 1_001_000_000 },
    queue: { revived: '1', 'state.delayed': 1 },
    'tenant:a': { '(expires)': null, idle: null, 'state.delayed': 1, 'state.total': 2 },
  })
})

it('discards those that fit, with a mark that says so', async () => {
  await bury('a', 2)

  const { reply, changes } = await store.changesOf(() => sweep('discard', { most: 1 }))

  expect(reply).toEqual({
    looked: 1,
    taken: 1,
    last: { died: '1000000000', jobKey: 'normal:default:1000000000:a' },
    to: '1000000000',
    left: 1,
  })
  expect(changes).toMatchObject({
    canceled: { 'normal:default:1000000000:a': 173_800_000_000 },
    dead: { 'normal:default:1000000000:a': null },
    queue: { discarded: '1' },
  })
})

it.each([
  ['tenant', { tenant: 'b' }, 1],
  ['type', { type: 'SEND' }, 3],
  ['another type', { type: 'OTHER' }, 0],
  ['reason', { reason: 'stalled' }, 1],
  ['text of the error', { error: 'mail' }, 2],
  ['text of the error as it is, not as a pattern', { error: 'm.il' }, 0],
  ['action', { action: 'x' }, 0],
] as const)('takes those of a %s', async (_, filter, expected) => {
  await bury('a', 1, 'no mailbox')
  await bury('b', 1, 'mail refused')
  await bury('c', 1, 'gone', 'stalled')

  expect((await sweep('retry', { filter: { ...any, ...filter } })).taken).toBe(expected)
})

it('goes on after those it has looked at, though all died in the same moment', async () => {
  await bury('a', 3)
  await bury('b', 2)
  const filter = { ...any, tenant: 'b' }
  const seen: number[] = []

  for (let after: LetterPlace | undefined = start; after; ) {
    const reply: SearchReply = await sweep('retry', { filter, after, looks: 2 })
    seen.push(reply.taken)
    after = reply.last
  }

  expect(seen.reduce((sum, taken) => sum + taken, 0)).toBe(2)
  expect((await sweep('retry', { filter: { ...any, tenant: 'nobody' } })).left).toBe(3)
})

it('steps over none that fits where one it has passed goes meanwhile', async () => {
  await bury('a', 1, 'passed')
  await bury('b', 3)
  await bury('B', 1)
  const filter = { ...any, error: 'no' }

  const first = await sweep('discard', { filter, most: 1 })
  await sweep('discard', { filter: { ...any, error: 'passed' } })
  const rest = await sweep('discard', { filter, after: first.last ?? start })

  expect([first.taken, rest]).toMatchObject([1, { taken: 3, last: undefined, left: 0 }])
})

it('goes on in the order of the set, whatever the case and the language of names', async () => {
  const names = ['Z', 'a', 'B', '\u00e9', 'b', '\ud83d\ude00', '\ufffd', 'aa', '_']
  for (const name of names) await store.client.zadd(store.keys().dead, store.now, `normal:default:1:${name}`)
  for (const name of names) await store.client.hset(store.keys().deadJobs, `normal:default:1:${name}`, 'nonsense')
  let taken = 0

  for (let after: LetterPlace | undefined = start; after; ) {
    const reply: SearchReply = await sweep('discard', { after, looks: 1 })
    taken += reply.taken
    after = reply.last
  }

  expect(taken).toBe(names.length)
})

it('leaves alone what died later', async () => {
  await bury('a', 1)
  store.now += 10
  await bury('b', 1)

  expect(await sweep('discard', { to: '1000000005' })).toMatchObject({ taken: 1, left: 1 })
})

it('goes no further than to the moment of its first step, though it is told to', async () => {
  await bury('a', 2)

  const first = await sweep('retry', { to: '9007199254740991', most: 1 })
  store.now += 10
  await bury('b', 1)
  const rest = await sweep('retry', { to: first.to, after: first.last ?? start })

  expect([first, rest]).toMatchObject([
    { taken: 1, to: '1000000000' },
    { taken: 1, to: '1000000000', last: undefined, left: 1 },
  ])
})

it('moves a job back into the counts of its open action', async () => {
  await store.openAction('x')
  await store.submit('a', 1, { lane: '@x' })
  const claim = await store.claim(1, {}, 'worker')
  await store.finish(claim, { outcome: 'dead', reason: 'failed', error: '{}' }, 'worker')

  const { reply, changes } = await store.changesOf(() => sweep('retry', { filter: { ...any, action: 'x' } }))

  expect(reply.taken).toBe(1)
  expect(changes['action:a:x']).toMatchObject({ 'state.failed': null, 'state.delayed': 1 })
})

it('answers a repeated request from memory and changes nothing', async () => {
  await bury('a', 2)
  const first = await sweep('retry', { most: 1 })
  store.repeatFrom1()

  const { reply, changes } = await store.changesOf(() => sweep('retry', { most: 1 }))

  expect(reply).toEqual(first)
  expect(changes).toEqual({})
})

it('runs while Redis is out of memory', async () => {
  await bury('a', 1)

  expect(await store.outOfMemory(() => sweep('retry'))).toMatchObject({ taken: 1 })
})

it('changes nothing in a store that does not know the queue', async () => {
  await store.empty()

  await expect(sweep('retry')).rejects.toThrow('unregistered')
  expect(await store.dump()).toEqual({})
})

it('retries none that is past its time, and takes some of these away', async () => {
  await store.begin({ keepDeadLettersMs: 3_600_000 })
  await bury('a', 1)
  store.now += 3_600_000_000

  const { reply, changes } = await store.changesOf(() => sweep('retry'))

  expect(reply).toMatchObject({ looked: 0, taken: 0, last: undefined, left: 0 })
  expect(changes).toMatchObject({ dead: null, 'dead:jobs': null, queue: { dead_expired: '1' } })
  expect(changes).not.toHaveProperty('delayed')
})
