import { expect, it } from 'vitest'
import { jobsOf, record } from '../../../test/support/script-store/script-jobs.ts'
import { useScriptStore } from '../../../test/support/script-store/use-script-store.ts'
import { cancelJob } from './cancel-job.ts'
import { endAction } from './end-action.ts'
import { freeTrash } from './free-trash.ts'
import { addressOf, readJob } from './read-job.ts'

const store = useScriptStore()

it('completes an action without jobs when it is sealed', async () => {
  await store.openAction('mail')

  const { reply, changes } = await store.changesOf(() => store.sealAction('mail'))

  expect(reply).toBe('COMPLETED')
  expect(changes).toEqual({
    'action:a:mail': {
      '(expires)': true,
      'state.before_at': 1_000_000_000,
      'state.ended': 1_000_000_000,
      'state.name': 'COMPLETED',
      'state.sealed': 1,
      'state.seen_at': 1_000_000_000,
    },
    'client:producer': {
      '2': '2',
    },
    events: [
      'type action.dispatched tenant a action mail',
      'type action.aggregating tenant a action mail',
      'type action.completed tenant a action mail',
    ],
  })
})

it('seals an action whose jobs still wait: it is dispatched, and takes no more', async () => {
  await store.openAction('mail')
  await store.submit('a', 1, { lane: '@mail' })

  const { reply, changes } = await store.changesOf(() => store.sealAction('mail'))

  expect(reply).toBe('DISPATCHED')
  expect(changes).toEqual({
    'action:a:mail': {
      'state.name': 'DISPATCHED',
      'state.sealed': 1,
    },
    'client:producer': {
      '3': '3',
    },
    events: ['type action.dispatched tenant a action mail'],
  })
  expect(await store.submit('a', 1, { lane: '@mail' })).toMatchObject({ accepted: 0, closed: [0] })
})

it('seals an action that runs, and it goes on', async () => {
  await store.openAction('mail', { sealTimeoutMs: 1_000 })
  await store.submit('a', 1, { lane: '@mail' })
  await store.claim(1)

  const { reply, changes } = await store.changesOf(() => store.sealAction('mail'))

  expect(reply).toBe('RUNNING')
  expect(changes).toMatchObject({ 'action:a:mail': { 'state.sealed': 1 }, duties: null })
})

it('completes an action whose last job has ended before it is sealed', async () => {
  await store.openAction('mail')
  await store.submit('a', 1, { lane: '@mail' })
  await store.finish(await store.claim(1), { outcome: 'succeeded' })

  expect(await store.sealAction('mail')).toBe('COMPLETED')
})

it('fails an action at its seal of which more than allowed have failed by then', async () => {
  await store.openAction('mail', { maxFailureRatio: 0.4 })
  await store.submit('a', 2, { lane: '@mail' })
  await store.finish(await store.claim(1), { outcome: 'dead', reason: 'failed', error: '{}' })

  const { reply, changes } = await store.changesOf(() => store.sealAction('mail'))

  expect(reply).toBe('FAILED')
  expect(changes).toMatchObject({
    'action:a:mail': { 'state.name': 'FAILED', 'state.canceled': 1, 'state.waiting': null },
    'lane:normal:@mail:a': null,
    queue: { canceled: '1', 'state.waiting': null },
  })
})

it('drops the lane of a cancelled action as a whole, and moves all counts at once', async () => {
  await store.openAction('mail')
  await store.submit('a', 3, { lane: '@mail' })

  const { reply, changes } = await store.changesOf(() => store.cancelAction('mail'))

  expect(reply).toBe('CANCELED')
  expect(changes).toEqual({
    'action:a:mail': {
      '(expires)': true,
      'state.canceled': 3,
      'state.dropped': 1_000_000_000,
      'state.ended': 1_000_000_000,
      'state.name': 'CANCELED',
      'state.waiting': null,
    },
    'client:producer': {
      '3': '3',
    },
    events: ['type action.canceled tenant a action mail'],
    'lane:normal:@mail:a': null,
    queue: {
      canceled: '3',
      'state.waiting': null,
      'state.weights:normal': null,
    },
    'ready:normal': null,
    'since:normal': null,
    'tenant:a': {
      '(expires)': true,
      idle: '1',
      'normal.lane': null,
      'normal.lanes': null,
      'normal.score': null,
      'state.waiting': null,
    },
  })
  expect((await store.claim(5)).jobs).toEqual([])
})

it('cancels what waits, is delayed, came back or runs, and leaves nothing of it', async () => {
  await inTheMidst()

  expect(await store.cancelAction('mail')).toBe('CANCELED')
  expect(await countsOf('mail')).toEqual({ total: 8, running: 1, canceled: 7 })
  expect(await store.counts('waiting', 'delayed', 'running', 'canceled')).toEqual([0, 0, 1, 7])
  expect((await store.dump())['tenant:a']).toMatchObject({ hash: {}, ttl: true })
})

it('is free of all that was cancelled once delayed jobs were due, running ones ended and the dropped list is freed', async () => {
  const { running } = await inTheMidst()
  await store.cancelAction('mail')

  await store.finish(running, { outcome: 'retry', delayMs: 1_000, error: '{}' })
  const duty = await store.takeDuty()
  await freeTrash(store.requests(), duty?.tenant ?? '', 100, store.nowUs)
  store.now += 10_000_000
  await store.claim(5)

  expect(await countsOf('mail')).toEqual({ total: 8, canceled: 8 })
  const dump = await store.dump()
  expect(
    Object.keys(dump).filter((key) => !/^(client|wake|actions?|events|duties|queue|settings|tenant)\b/.test(key)),
  ).toEqual(['canceled', 'marks:a:mail'])
  for (const at of Object.values((dump.canceled as { zset: object }).zset)) expect(at).toBeLessThan(9e15)
})

it.each(['waiting', 'marked', 'delayed', 'returned', 'retried'] as const)(
  'says of a %s job that it was canceled, before and after it is gone',
  async (which) => {
    const { running, [which]: job } = await inTheMidst()
    const state = async () => (await readJob(store.requests(), addressOf(job, 'a'), store.nowUs))?.state

    await store.cancelAction('mail')
    const before = await state()
    await store.finish(running, { outcome: 'succeeded' })
    const duty = await store.takeDuty()
    await freeTrash(store.requests(), duty?.tenant ?? '', 100, store.nowUs)
    store.now += 10_000_000
    await store.claim(5)

    expect([before, await state()]).toEqual(['canceled', 'canceled'])
  },
)

it('says of a job that succeeded before its action was cancelled that it succeeded', async () => {
  await store.openAction('mail')
  await store.submit('a', 2, { lane: '@mail' })
  await store.finish(await store.claim(1), { outcome: 'succeeded' })
  await store.cancelAction('mail')

  expect(await readJob(store.requests(), addressOf('normal:@mail:1000000000:a', 'a'), store.nowUs)).toMatchObject({
    state: 'succeeded',
  })
})

it('tells the workers that may run jobs of a cancelled action', async () => {
  await store.openAction('mail')
  await store.submit('a', 2, { lane: '@mail' })
  await store.claim(1, {}, 'one')
  await store.claim(1, {}, 'two')

  const { changes } = await store.changesOf(() => store.cancelAction('mail'))

  expect(changes).toMatchObject({
    'wake:one': ['cancel-action:@mail:a'],
    'wake:two': ['cancel-action:@mail:a'],
  })
})

it('counts a running job of a cancelled action as it ends: succeeded if it did, else canceled', async () => {
  await store.openAction('mail')
  await store.submit('a', 2, { lane: '@mail' })
  const one = await store.claim(1)
  const two = await store.claim(1)
  await store.cancelAction('mail')

  await store.finish(one, { outcome: 'succeeded' })
  await store.finish(two, { outcome: 'returned' })

  expect(await countsOf('mail')).toEqual({ total: 2, succeeded: 1, canceled: 1 })
  expect(await store.counts('waiting', 'running', 'succeeded', 'canceled')).toEqual([0, 0, 1, 1])
})

it('leaves the other lanes of the tenant their turns', async () => {
  await store.openAction('mail')
  await store.openAction('post')
  await store.submit('a', 1, { lane: '@mail' })
  await store.submit('a', 1, { lane: '@post' })
  await store.submit('a', 1)

  await store.cancelAction('post')
  const claim = await store.claim(5)

  expect(jobsOf(claim).map((job) => job.jobKey.split(':')[1])).toEqual(['@mail', 'default'])
  expect((await store.dump())['ready:normal']).toBeUndefined()
})

it('keeps a tenant that still stands in line for a lane that was dropped', async () => {
  await store.openAction('mail')
  await store.submit('a', 2)
  await store.submit('a', 1, { lane: '@mail' })

  await store.cancelAction('mail')
  await store.claim(2)
  const waiting = await store.dump()
  await store.claim(1)
  const met = await store.dump()

  expect(waiting['tenant:a']).not.toHaveProperty('ttl')
  expect(waiting).toHaveProperty('ready:normal')
  expect(met['tenant:a']).toHaveProperty('ttl')
  expect(met).not.toHaveProperty('ready:normal')
})

it('leaves no duty to seal a cancelled action, which might then be another of its name', async () => {
  await store.openAction('mail', { sealTimeoutMs: 60_000 })

  const { changes } = await store.changesOf(() => store.cancelAction('mail'))

  expect(changes).toMatchObject({ duties: null })
})

it('frees the lane of a cancelled ordered action that waited for a delayed job', async () => {
  await store.openAction('mail', { lane: '!@mail' })
  await store.submit('a', 2, { lane: '!@mail' })
  await store.finish(await store.claim(1), { outcome: 'retry', delayMs: 1_000, error: '{}' })

  const { changes } = await store.changesOf(() => store.cancelAction('mail'))

  expect(changes).toMatchObject({ 'lanes:a': null })
})

it.each(['seal', 'cancel'] as const)('changes nothing of an action that has ended: %s', async (verb) => {
  await store.openAction('mail')
  await store.sealAction('mail')

  const { reply, changes } = await store.changesOf(() =>
    verb === 'seal' ? store.sealAction('mail') : store.cancelAction('mail'),
  )

  expect(reply).toBe('COMPLETED')
  expect(changes).toEqual({ 'client:producer': { '3': '3' } })
})

it('wakes an idle worker for what is to be done about the end', async () => {
  await store.openAction('mail', {}, { webhook: '{}' })
  await store.claim(1, { idleForMs: 60_000 }, 'sleeper')

  const { changes } = await store.changesOf(() => store.sealAction('mail'))

  expect(changes).toMatchObject({ duties: { 'webhook:a:mail': 1_000_000_000 }, idle: null, 'wake:sleeper': ['work'] })
})

it('judges an action by counts that were put right, and no other way', async () => {
  await store.openAction('mail')
  await store.submit('a', 1, { lane: '@mail' })
  const judge = () => endAction(store.requests(), { tenant: 'a', name: 'mail', verb: 'judge' }, store.nowUs)
  expect(await judge()).toBe('CREATED')
  await store.sealAction('mail')
  expect(await judge()).toBe('DISPATCHED')
  await store.client.eval(
    "local v = { cmsgpack.unpack(redis.call('HGET', KEYS[1], 'state')) } v[6] = 0 redis.call('HSET', KEYS[1], 'state', cmsgpack.pack(unpack(v)))",
    1,
    `${store.keys().queue.slice(0, -'queue'.length)}action:a:mail`,
  )

  expect(await judge()).toBe('COMPLETED')
})

it('knows no action that was never opened', async () => {
  const { reply, changes } = await store.changesOf(() => store.cancelAction('mail'))

  expect(reply).toBeUndefined()
  expect(changes).toEqual({})
})

it('answers a repeated request from memory and changes nothing', async () => {
  await store.openAction('mail')
  await store.submit('a', 3, { lane: '@mail' })
  store.repeatFrom1('producer')
  await store.client.del('test:{q}:q:client:producer')
  await store.cancelAction('mail')
  store.repeatFrom1('producer')

  const { reply, changes } = await store.changesOf(() => store.cancelAction('mail'))

  expect(reply).toBe('CANCELED')
  expect(changes).toEqual({})
})

it('changes nothing in a store that does not know the queue', async () => {
  await store.empty()

  await expect(store.cancelAction('mail')).rejects.toThrow('unregistered')
  expect(await store.dump()).toEqual({})
})

it('runs while Redis is out of memory', async () => {
  await store.openAction('mail')
  await store.submit('a', 3, { lane: '@mail' })

  expect(await store.outOfMemory(() => store.cancelAction('mail'))).toBe('CANCELED')
})

/** Eight jobs of which one runs, one is retried later, one came back, one was cancelled, three wait, one is delayed. */
async function inTheMidst() {
  await store.openAction('mail')
  await store.submit('a', 7, { lane: '@mail' })
  const running = await store.claim(1)
  store.now += 10
  const retried = await store.claim(1)
  const returned = await store.claim(1)
  await store.finish(retried, { outcome: 'retry', delayMs: 5_000, error: '{}' })
  await store.finish(returned, { outcome: 'released' })
  const later = await store.submit('a', 0, { lane: '@mail', kind: 'later', entries: ['+5000000', '', record(8)] })
  const marked = 'normal:@mail:1000000004:a'
  await cancelJob(store.requests(), addressOf(marked, 'a'), store.nowUs)
  return {
    running,
    marked,
    retried: jobsOf(retried)[0]?.jobKey ?? '',
    returned: jobsOf(returned)[0]?.jobKey ?? '',
    waiting: 'normal:@mail:1000000005:a',
    delayed: `normal:@mail:${later.firsts[0]}:a`,
  }
}

/** Of an action's jobs, those counts that are not 0. */
async function countsOf(name: string): Promise<Record<string, unknown>> {
  const { hash } = (await store.dump())[`action:a:${name}`] as { hash: Record<string, unknown> }
  const names = ['total', 'waiting', 'running', 'delayed', 'succeeded', 'failed', 'canceled', 'marks']
  return Object.fromEntries(names.flatMap((each) => (hash[`state.${each}`] ? [[each, hash[`state.${each}`]]] : [])))
}
