import { expect, it } from 'vitest'
import { finishedAs } from '../../../test/support/script-store/script-jobs.ts'
import { useScriptStore } from '../../../test/support/script-store/use-script-store.ts'
import { readActions } from './read-actions.ts'

const store = useScriptStore()

function read(names: string[], withStatistics = false) {
  return readActions(store.requests(), names, { withStatistics, nowUs: store.nowUs })
}

it('says all that is known of an action, and changes nothing', async () => {
  await store.openAction('mail', { maxFailureRatio: 0.5, keepResults: true })
  await store.submit('a', 3, { lane: '@mail' })
  store.now += 1_000_000
  const claim = await store.claim(2)
  store.now += 1_000_000
  await store.claim(0, {
    finished: finishedAs(claim, { outcome: 'succeeded' }, { attempts: 1, throttles: 2, durationMs: 5, result: 'r' }),
  })
  store.now += 1_000_000

  const { reply, changes } = await store.changesOf(() => read(['a:mail']))

  expect(reply).toEqual([
    {
      tenant: 'a',
      name: 'mail',
      state: 'RUNNING',
      isSealed: false,
      received: 3,
      counts: { total: 3, waiting: 1, running: 0, delayed: 0, succeeded: 2, failed: 0, canceled: 0 },
      type: 'SEND',
      level: 'normal',
      lane: '@mail',
      keepResults: true,
      failFast: false,
      maxFailureRatio: 0.5,
      createdAt: 1_000_000,
      startedAt: 1_001_000,
      endedAt: 0,
      lastEndAt: 1_002_000,
      first: 1_000_000_000,
      next: 1_000_000_003,
      attempts: 2,
      throttles: 4,
      perSecond: 2 / 3,
      pace: { waiting: 1, lanes: 1, speed: 1, backoffMs: 2_000, baseBackoffMs: 1_000 },
      aggregate: '',
      error: '',
      statistics: new Map(),
    },
  ])
  expect(changes).toEqual({})
})

it('says what the jobs took and how they failed when it is asked for', async () => {
  await store.openAction('mail')
  await store.submit('a', 3, { lane: '@mail' })
  const told = { attempts: 1, throttles: 0, durationMs: 5, result: '' }
  await store.claim(0, { finished: finishedAs(await store.claim(2), { outcome: 'succeeded' }, told) })
  const dead = { outcome: 'dead', reason: 'failed', error: '{"message":"no"}' } as const
  await store.claim(0, { finished: finishedAs(await store.claim(1), dead, told) })

  const [found] = await read(['a:mail'], true)

  expect(found?.statistics).toEqual(
    new Map([
      ['d65', '3'],
      ['eno', '1\nnormal:@mail:1000000002:a'],
    ]),
  )
})

it('has the aggregate, which may be large, only when it is asked for', async () => {
  await store.openAction('mail')
  await store.client.hset('test:{q}:q:action:a:mail', 'aggregate', '{"sum":1}')

  expect(await read(['a:mail'])).toMatchObject([{ aggregate: '' }])
  expect(await read(['a:mail'], true)).toMatchObject([{ aggregate: '{"sum":1}' }])
})

it('has the rate of the last five to ten seconds', async () => {
  await store.openAction('mail')
  await store.submit('a', 40, { lane: '@mail' })
  const finishFour = async () => store.finish(await store.claim(4), { outcome: 'succeeded' })
  for (let second = 0; second < 8; second++) {
    await finishFour()
    store.now += 1_000_000
  }

  expect(await read(['a:mail'])).toMatchObject([{ perSecond: 4 }])
  store.now += 24_000_000
  expect(await read(['a:mail'])).toMatchObject([{ perSecond: 1 }])
})

it('has a rate that forgets how long the action was paused', async () => {
  await store.openAction('mail')
  await store.submit('a', 40, { lane: '@mail' })
  const finishFour = async () => store.finish(await store.claim(4), { outcome: 'succeeded' })
  await finishFour()
  store.now += 3_600_000_000

  for (let second = 0; second < 5; second++) {
    await finishFour()
    store.now += 1_000_000
  }

  // Twenty in the five seconds since, and half a second in which the first of them may have run.
  expect(await read(['a:mail'])).toMatchObject([{ perSecond: 20 / 5.5 }])
})

it('answers for each name, with nothing where there is no such action', async () => {
  await store.openAction('mail')
  await store.openAction('mail', {}, { tenant: 'b' })

  const found = await read(['b:mail', 'a:post', 'a:mail'])

  expect(found.map((action) => action?.tenant)).toEqual(['b', undefined, 'a'])
})

it('changes nothing in a store that does not know the queue', async () => {
  await store.empty()

  await expect(read(['a:mail'])).rejects.toThrow('unregistered')
  expect(await store.dump()).toEqual({})
})
