import { expect, it } from 'vitest'
import { finishedAs, jobsOf, record } from '../../../test/support/script-store/script-jobs.ts'
import { useScriptStore } from '../../../test/support/script-store/use-script-store.ts'
import { idDigest } from '../names.ts'
import { cancelJob } from './cancel-job.ts'
import { addressOf, readJob } from './read-job.ts'

const store = useScriptStore()

function cancel(id: string, tenant = 'a') {
  return cancelJob(store.requests(), addressOf(id, tenant), store.nowUs)
}

it('marks a waiting job and counts it at once; the claim that meets it drops it', async () => {
  await store.submit('a', 2)

  const canceled = await store.changesOf(() => cancel('normal:default:1000000000:a'))
  const claimed = await store.changesOf(() => store.claim(5))

  expect(canceled.reply).toBe('canceled')
  expect(canceled.changes).toEqual({
    canceled: {
      'normal:default:1000000000:a': 9_000_000_000_000_000,
    },
    'client:me': {
      '(expires)': true,
      '1': '1',
    },
    queue: {
      canceled: '1',
      'state.waiting': 1,
    },
    'tenant:a': {
      'state.marks': 1,
      'state.waiting': 1,
    },
  })
  expect(jobsOf(claimed.reply).map((job) => job.jobKey)).toEqual(['normal:default:1000000001:a'])
  expect(claimed.changes).toEqual({
    canceled: {
      'normal:default:1000000000:a': 173_800_000_000,
    },
    'claim:1000000000': {
      'normal:default:1000000001:a': '|rs|SEND|||2',
    },
    'client:me': {
      '2': '2',
    },
    'lane:normal:default:a': null,
    leases: {
      '1000000000:me': 1_015_000_000,
    },
    queue: {
      claimed: '1',
      'state.fence': 1_000_000_000,
      'state.running': 1,
      'state.running:normal': 1,
      'state.turns': 1,
      'state.virtual:normal': 1_000_000,
      'state.waiting': null,
      'state.weights:normal': null,
      'state.starts': 1,
    },
    'ready:normal': null,
    running: {
      a: '1',
    },
    'since:normal': null,
    'tenant:a': {
      'normal.reached': 1000,
      '(expires)': true,
      idle: '1',
      'normal.entitled': 1_000_000,
      'normal.lane': null,
      'normal.lanes': null,
      'normal.received': 1,
      'normal.score': null,
      'normal.virtual': 1_000_000,
      'state.marks': null,
      'state.waiting': null,
    },
  })
})

it('takes a delayed job away', async () => {
  await store.submit('a', 0, { kind: 'later', entries: ['+5000', '', record(1)] })

  const { reply, changes } = await store.changesOf(() => cancel('normal:default:01000000000:a'))

  expect(reply).toBe('canceled')
  expect(changes).toEqual({
    aside: null,
    canceled: {
      'normal:default:01000000000:a': 173_800_000_000,
    },
    'client:me': {
      '(expires)': true,
      '1': '1',
    },
    delayed: null,
    queue: {
      canceled: '1',
      'state.delayed': null,
    },
    'tenant:a': {
      '(expires)': true,
      idle: '1',
      'state.delayed': null,
    },
  })
})

it('lets the next job of an ordered lane start when the delayed one before it is cancelled', async () => {
  await store.submit('a', 2, { lane: '!exact' })
  const claim = await store.claim(5)
  await store.finish(claim, { outcome: 'retry', delayMs: 60_000, error: '{}' })

  const { reply, changes } = await store.changesOf(() => cancel(jobsOf(claim)[0]?.jobKey ?? ''))

  expect(reply).toBe('canceled')
  expect(changes).toEqual({
    aside: null,
    canceled: {
      'normal:!exact:1000000000:a': 173_800_000_000,
    },
    'client:me': {
      '3': '3',
    },
    delayed: null,
    'lanes:a': {
      'busy:normal:!exact': null,
    },
    queue: {
      'state.entry:normal': 1_000_000_002,
      canceled: '1',
      'state.clock': 1_000_000_002,
      'state.delayed': null,
      'state.weights:normal': 1000,
      'state.starts': null,
    },
    'ready:normal': {
      a: 1_000_000_002,
    },
    'since:normal': {
      a: 1_000_000_000,
    },
    'tenant:a': {
      'normal.lane': '!exact',
      'normal.lanes': 1,
      'normal.score': 1_000_000_002,
      'state.delayed': null,
      'pace.received': 1,
    },
  })
  expect(jobsOf(await store.claim(5))).toHaveLength(1)
})

it('tells the worker of a running job, which ends as canceled when it comes back', async () => {
  await store.submit('a', 1)
  const claim = await store.claim(1, {}, 'worker')

  const told = await store.changesOf(() => cancel('normal:default:1000000000:a'))
  const ended = await store.changesOf(() =>
    store.finish(claim, { outcome: 'retry', delayMs: 1_000, error: '{}' }, 'worker'),
  )

  expect(told.reply).toBe('canceling')
  expect(told.changes).toEqual({
    canceled: {
      'normal:default:1000000000:a': 9_000_000_000_000_000,
    },
    'client:me': {
      '(expires)': true,
      '1': '1',
    },
    queue: {
      'state.canceling': 1,
    },
    'wake:worker': ['cancel:normal:default:1000000000:a'],
  })
  expect(ended.changes).toEqual({
    canceled: {
      'normal:default:1000000000:a': 173_800_000_000,
    },
    'claim:1000000000': null,
    'client:worker': {
      '2': '2',
    },
    leases: null,
    queue: {
      canceled: '1',
      retried: '1',
      'state.canceling': null,
      'state.running': null,
      'state.running:normal': null,
    },
    running: null,
  })
})

it.each([
  ['released', { outcome: 'released' }],
  ['throttled', { outcome: 'throttled', delayMs: 1_000 }],
  ['dead', { outcome: 'dead', reason: 'failed', error: '{}' }],
] as const)('ends a running job as canceled that comes back %s', async (_, finish) => {
  await store.submit('a', 1)
  const claim = await store.claim(1, {}, 'worker')
  await cancel('normal:default:1000000000:a')

  await store.finish(claim, finish, 'worker')

  const { state } = (await readJob(store.requests(), addressOf('normal:default:1000000000:a', 'a'), store.nowUs)) ?? {}
  expect(state).toBe('canceled')
  expect(await store.counts('canceled', 'failed', 'waiting')).toEqual([1, 0, 0])
})

it('lets a running job succeed that does so all the same, and leaves no mark', async () => {
  await store.submit('a', 1)
  const claim = await store.claim(1, {}, 'worker')
  await cancel('normal:default:1000000000:a')
  await cancel('normal:default:1000000000:a')

  await store.finish(claim, { outcome: 'succeeded' }, 'worker')

  const { state } = (await readJob(store.requests(), addressOf('normal:default:1000000000:a', 'a'), store.nowUs)) ?? {}
  expect(state).toBe('succeeded')
  expect(await store.dump()).not.toHaveProperty('canceled')
})

it('finds a job by the id it was given', async () => {
  await store.submit('a', 0, { kind: 'named', entries: [idDigest('a', 'order-1'), record(1)] })

  expect(await cancel('order-1')).toBe('canceled')
  expect(await cancel('order-1', 'b')).toBe('unknown')
})

it('changes nothing for a job that has ended or was never there', async () => {
  await store.submit('a', 2)
  const claim = await store.claim(2)
  const [first, second] = finishedAs(claim, { outcome: 'succeeded' })
  if (!first || !second) throw new Error('two jobs were to be claimed')
  await store.claim(0, { finished: [first, { ...second, finish: { outcome: 'dead', reason: 'failed', error: '{}' } }] })

  const { reply, changes } = await store.changesOf(async () => [
    await cancel('normal:default:1000000000:a'),
    await cancel('normal:default:1000000001:a'),
    await cancel('normal:default:1000000002:a'),
    await cancel('never-submitted'),
  ])

  expect(reply).toEqual(['ended', 'ended', 'unknown', 'unknown'])
  expect(changes).toEqual({})
})

it('cancels once', async () => {
  await store.submit('a', 1)
  await cancel('normal:default:1000000000:a')

  const { reply, changes } = await store.changesOf(() => cancel('normal:default:1000000000:a'))

  expect(reply).toBe('canceled')
  expect(changes).toEqual({})
})

it('answers a repeated request from memory and changes nothing', async () => {
  await store.submit('a', 1)
  await cancel('normal:default:1000000000:a')
  store.repeatFrom1()

  const { reply, changes } = await store.changesOf(() => cancel('normal:default:1000000000:a'))

  expect(reply).toBe('canceled')
  expect(changes).toEqual({})
})

it('knows no job in a store that does not know the queue', async () => {
  await store.empty()

  expect(await cancel('normal:default:1:a')).toBe('unknown')
  expect(await store.dump()).toEqual({})
})

it('runs while Redis is out of memory', async () => {
  await store.submit('a', 1)

  expect(await store.outOfMemory(() => cancel('normal:default:1000000000:a'))).toBe('canceled')
})
