import { expect, it } from 'vitest'
import { jobsOf, record } from '../../../test/support/script-store/script-jobs.ts'
import type { ScriptStore } from '../../../test/support/script-store/script-store.ts'
import { useScriptStore } from '../../../test/support/script-store/use-script-store.ts'
import { placeOfKey } from '../job-place.ts'
import { idDigest } from '../names.ts'
import { addressOf, readJob } from './read-job.ts'

/** What submit-jobs does with the jobs of an action. */

const store = useScriptStore()

function submitNamed(ids: readonly string[], lane: string) {
  const entries = ids.flatMap((id) => [idDigest('a', id), record(id)])
  return store.submit('a', 0, { lane, kind: 'named', entries })
}

it('counts the jobs with their action, which keeps the numbers of its lane', async () => {
  await store.openAction('mail')

  const { reply, changes } = await store.changesOf(() => store.submit('a', 2, { lane: '@mail' }))

  expect(reply).toEqual({ accepted: 2, duplicates: 0, firsts: ['1000000000'], full: [], closed: [] })
  expect(changes).toEqual({
    'action:a:mail': {
      'state.before_at': 1_000_000_000,
      'state.first': 1_000_000_000,
      'state.next': 1_000_000_002,
      'state.received': 2,
      'state.seen_at': 1_000_000_000,
      'state.total': 2,
      'state.waiting': 2,
    },
    'client:producer': {
      '2': '2',
    },
    'lane:normal:@mail:a': ['|rs|SEND|||1', '|rs|SEND|||2'],
    queue: {
      'state.entry:normal': 1_000_000_001,
      'state.clock': 1_000_000_001,
      'state.waiting': 2,
      'state.weights:normal': 1000,
      submitted: '2',
      'state.active_since': 1_000_000_000,
      'state.slot': 200,
    },
    'ready:normal': {
      a: 1_000_000_001,
    },
    'since:normal': {
      a: 1_000_000_000,
    },
    'tenant:a': {
      'normal.lane': '@mail',
      'normal.lanes': 1,
      'normal.score': 1_000_000_001,
      'normal.since': 1_000_000_000,
      'state.total': 2,
      'state.waiting': 2,
      'pace.active_since': 1_000_000_000,
      'pace.slot': 200,
    },
  })
})

it('counts delayed jobs with their action', async () => {
  await store.openAction('mail')

  const { changes } = await store.changesOf(() =>
    store.submit('a', 0, { lane: '@mail', kind: 'later', entries: ['+5000', '', record(1), '+5000', '', record(2)] }),
  )

  expect(changes).toMatchObject({
    'action:a:mail': { 'state.delayed': 2, 'state.received': 2, 'state.total': 2 },
    queue: { 'state.delayed': 2, submitted: '2' },
  })
})

it('numbers the jobs of an action without a gap when its lane ran empty in between', async () => {
  await store.openAction('mail')
  await store.submit('a', 2, { lane: '@mail' })
  await store.finish(await store.claim(5), { outcome: 'succeeded' })
  store.now += 1_000_000

  const { firsts } = await store.submit('a', 2, { lane: '@mail' })

  expect(firsts).toEqual(['1000000002'])
  expect(jobsOf(await store.claim(5)).map(({ jobKey }) => jobKey)).toEqual([
    'normal:@mail:1000000002:a',
    'normal:@mail:1000000003:a',
  ])
})

it('takes no job for an action that is sealed, has ended or was never opened, and all others of the request', async () => {
  await store.openAction('sealed')
  await store.submit('a', 1, { lane: '@sealed' })
  await store.sealAction('sealed')
  await store.openAction('canceled')
  await store.cancelAction('canceled')
  const line = { tenant: 'a', level: 'normal', basePriority: undefined, kind: 'fresh', entries: [record(1)] } as const

  const { reply, changes } = await store.changesOf(() =>
    store.submitLines(['@sealed', '@canceled', '@never', 'default'].map((lane) => ({ ...line, lane }))),
  )

  expect(reply).toMatchObject({ accepted: 1, firsts: ['0', '0', '0', expect.any(String)], closed: [0, 1, 2] })
  expect(Object.keys(changes).filter((key) => /^(action|lane)/.test(key))).toEqual(['lane:normal:default:a'])
})

it('knows ids within an action: the same id in another action, or outside, is another job', async () => {
  await store.openAction('mail')
  await store.openAction('post')

  const replies = [
    await submitNamed(['x', 'y'], '@mail'),
    await submitNamed(['y', 'z'], '@mail'),
    await submitNamed(['x'], '@post'),
    await submitNamed(['x'], 'default'),
  ]

  expect(replies.map(({ accepted, duplicates }) => [accepted, duplicates])).toEqual([
    [2, 0],
    [1, 1],
    [1, 0],
    [1, 0],
  ])
})

it('keeps the ids of an action beside it, as long as it is kept itself', async () => {
  await store.openAction('mail')

  const { changes } = await store.changesOf(() => submitNamed(['x'], '@mail'))

  const [bucket = ''] = Object.keys(changes).filter((key) => key.startsWith('ids'))
  expect(bucket).toMatch(/^ids:@a:mail:0:\d+$/)
  expect(changes[bucket]).toEqual({ '(expires)': true, [idDigest('a', 'x')]: 'normal:@mail:1000000000' })
  expect(await store.client.pttl(`test:{q}:q:${bucket}`)).toBeGreaterThan(6 * 24 * 3_600_000)
})

it('finds a job of an action by its id, there and not elsewhere', async () => {
  await store.openAction('mail')
  await submitNamed(['x'], '@mail')
  const state = async (action?: string) =>
    (await readJob(store.requests(), addressOf('x', 'a', action), store.nowUs))?.state

  expect([await state('mail'), await state('post'), await state()]).toEqual(['waiting', undefined, undefined])
})

it('counts as received what did fit, known ids included, so that a producer can go on from there', async () => {
  await store.begin({ maxPendingPerTenant: 2 })
  await store.openAction('mail')
  await submitNamed(['x'], '@mail')

  const { full } = await submitNamed(['x', 'y', 'z'], '@mail')

  expect(full).toEqual([{ line: 0, dealtWith: 2 }])
  expect(await store.openAction('mail')).toMatchObject({ received: 3 })
})

it('lets an action and the other lanes of its tenant take turns', async () => {
  await store.begin({ quantum: 2 })
  await store.openAction('mail')
  await store.openAction('post')
  await store.submit('a', 4, { lane: '@mail' })
  await store.submit('a', 4)
  await store.submit('a', 4, { lane: '@post' })

  const lanes: string[] = []
  for (let turn = 0; turn < 6; turn++) {
    const claim = await store.claim(2)
    lanes.push(...jobsOf(claim).map(({ jobKey }) => jobKey.split(':')[1] as string))
  }

  expect(lanes).toEqual([
    ...['@mail', '@mail', 'default', 'default', '@post', '@post'],
    ...['@mail', '@mail', 'default', 'default', '@post', '@post'],
  ])
})

it('runs an ordered action one job at a time, and others beside it', async () => {
  await store.openAction('mail', { lane: '!@mail' })
  await store.openAction('post')
  await store.submit('a', 2, { lane: '!@mail' })
  await store.submit('a', 2, { lane: '@post' })

  const first = await store.claim(5)
  await store.claim(0, { finished: finishedFirst(first) })
  const second = await store.claim(5)

  expect(jobsOf(first).map(({ jobKey }) => jobKey.split(':')[1])).toEqual(['!@mail', '@post', '@post'])
  expect(jobsOf(second).map(({ jobKey }) => jobKey)).toEqual(['normal:!@mail:1000000001:a'])
})

it('keeps the order of an action even if its tenant still waits for the lane of an earlier one of that name', async () => {
  await store.openAction('mail', { lane: '!@mail' })
  await store.submit('a', 3)
  await store.submit('a', 1, { lane: '!@mail' })
  await store.cancelAction('mail')
  await store.client.del('test:{q}:q:action:a:mail')
  await store.openAction('mail', { lane: '!@mail' })
  await store.submit('a', 2, { lane: '!@mail' })

  const lanes = jobsOf(await store.claim(10)).map(({ jobKey }) => jobKey.split(':')[1])

  expect(lanes).toEqual(['default', 'default', 'default', '!@mail'])
  expect(await store.dump()).not.toHaveProperty('ring:normal:a')
})

it('stores nothing twice of a repeated request', async () => {
  await store.openAction('mail')
  const first = await store.submitLines(
    [{ tenant: 'a', level: 'normal', lane: '@mail', basePriority: undefined, kind: 'fresh', entries: [record(1)] }],
    'other',
  )
  store.repeatFrom1('other')

  const { reply, changes } = await store.changesOf(() =>
    store.submitLines(
      [{ tenant: 'a', level: 'normal', lane: '@mail', basePriority: undefined, kind: 'fresh', entries: [record(1)] }],
      'other',
    ),
  )

  expect(reply).toEqual(first)
  expect(changes).toEqual({})
})

function finishedFirst(claim: Awaited<ReturnType<ScriptStore['claim']>>) {
  const [job] = jobsOf(claim)
  const jobKey = job?.jobKey ?? ''
  const finish = { outcome: 'succeeded' } as const
  return [{ fence: claim.fence, jobKey, place: placeOfKey(jobKey), standing: 'normal' as const, finish }]
}
