import { beforeEach, describe, expect, it } from 'vitest'
import { finishedAs, jobsOf, record } from '../../../test/support/script-store/script-jobs.ts'
import { useScriptStore } from '../../../test/support/script-store/use-script-store.ts'
import { cancelJob } from './cancel-job.ts'
import type { Finish } from './finish-and-claim.ts'
import { addressOf, readJob } from './read-job.ts'
import { takeDeadLetter } from './take-dead-letter.ts'

/** Single jobs of an action: cancelled, read, and taken out of the dead letters. */

const store = useScriptStore()
beforeEach(async () => {
  await store.openAction('mail')
})

const dead: Finish = { outcome: 'dead', reason: 'failed', error: '{"message":"no"}' }
const FIRST = 'normal:@mail:1000000000:a'

function cancel(id: string) {
  return cancelJob(store.requests(), addressOf(id, 'a'), store.nowUs)
}

async function stateOf(id: string): Promise<string | undefined> {
  return (await readJob(store.requests(), addressOf(id, 'a'), store.nowUs))?.state
}

/** What an action shows of its state, apart from times. */
async function action(): Promise<Record<string, unknown>> {
  const content = (await store.dump())['action:a:mail'] as { hash: Record<string, unknown> }
  const names = ['name', 'total', 'waiting', 'running', 'delayed', 'succeeded', 'failed', 'canceled', 'marks']
  return Object.fromEntries(
    names.flatMap((each) => (content.hash[`state.${each}`] ? [[each, content.hash[`state.${each}`]]] : [])),
  )
}

describe('a cancelled job', () => {
  it('is marked with its action while it waits, and dropped by the claim that meets it', async () => {
    await store.submit('a', 2, { lane: '@mail' })

    const canceled = await store.changesOf(() => cancel(FIRST))
    const claimed = await store.changesOf(() => store.claim(5))

    expect(canceled.reply).toBe('canceled')
    expect(canceled.changes).toEqual({
      'action:a:mail': {
        'state.canceled': 1,
        'state.marks': 1,
        'state.waiting': 1,
      },
      'client:me': {
        '(expires)': true,
        '1': '1',
      },
      'marks:a:mail': ['1000000000'],
      queue: {
        canceled: '1',
        'state.waiting': 1,
      },
      'tenant:a': {
        'state.marks': 1,
        'state.waiting': 1,
      },
    })
    expect(jobsOf(claimed.reply).map((job) => job.jobKey)).toEqual(['normal:@mail:1000000001:a'])
    expect(claimed.changes).not.toHaveProperty('canceled')
    expect(claimed.changes).toMatchObject({
      'action:a:mail': { 'state.marks': null },
      'tenant:a': { 'state.marks': null },
    })
    expect(await stateOf(FIRST)).toBe('canceled')
  })

  it('is dropped in front of the lane as well', async () => {
    await store.submit('a', 2, { lane: '@mail' })
    await store.finish(await store.claim(1), { outcome: 'released' })

    expect(await cancel(FIRST)).toBe('canceled')
    expect(jobsOf(await store.claim(5)).map((job) => job.jobKey)).toEqual(['normal:@mail:1000000001:a'])
    expect(await action()).toEqual({ name: 'RUNNING', total: 2, running: 1, canceled: 1 })
    expect(await store.dump()).not.toHaveProperty('aside')
  })

  it('goes at once while it is delayed', async () => {
    const later = await store.submit('a', 0, { lane: '@mail', kind: 'later', entries: ['+5000', '', record(1)] })
    const job = `normal:@mail:${later.firsts[0]}:a`

    expect(await cancel(job)).toBe('canceled')
    expect(await action()).toEqual({ name: 'CREATED', total: 1, canceled: 1 })
    expect(await stateOf(job)).toBe('canceled')
    expect(await store.dump()).not.toHaveProperty('delayed')
  })

  it.each([
    ['succeeds all the same', { outcome: 'succeeded' }, { succeeded: 1 }],
    ['comes back', { outcome: 'released' }, { canceled: 1 }],
    ['fails', dead, { canceled: 1 }],
  ] as const)('that runs counts as it ends: it %s', async (_, finish, counts) => {
    await store.submit('a', 1, { lane: '@mail' })
    await store.sealAction('mail')
    const claim = await store.claim(1)

    expect(await cancel(FIRST)).toBe('canceling')
    await store.finish(claim, finish)

    expect(await action()).toEqual({ name: 'COMPLETED', total: 1, ...counts })
  })

  it('completes a sealed action when it was the last, and takes its lane with it', async () => {
    await store.submit('a', 2, { lane: '@mail' })
    await store.finish(await store.claim(1), { outcome: 'released' })
    await store.sealAction('mail')
    await cancel(FIRST)

    const { changes } = await store.changesOf(() => cancel('normal:@mail:1000000001:a'))

    expect(changes).toEqual({
      'action:a:mail': {
        '(expires)': true,
        'state.canceled': 2,
        'state.dropped': 1_000_000_001,
        'state.ended': 1_000_000_000,
        'state.marks': null,
        'state.name': 'COMPLETED',
        'state.waiting': null,
      },
      'client:me': {
        '4': '4',
      },
      duties: {
        'free:1000000002': 1_000_000_000,
      },
      events: ['type action.aggregating tenant a action mail', 'type action.completed tenant a action mail'],
      'front:normal:@mail:a': null,
      'lane:normal:@mail:a': null,
      'marks:a:mail': ['1000000000', '1000000001'],
      queue: {
        canceled: '2',
        'state.clock': 1_000_000_002,
        'state.waiting': null,
        'state.weights:normal': null,
      },
      'ready:normal': null,
      'since:normal': null,
      'tenant:a': {
        '(expires)': true,
        idle: '1',
        'normal.entitled': 1_000_000,
        'normal.lane': null,
        'normal.lanes': null,
        'normal.score': null,
        'normal.used': null,
        'normal.virtual': 1_000_000,
        'state.front': null,
        'state.marks': null,
        'state.waiting': null,
      },
      'trash:1000000002': ['normal:@mail:1000000000:a'],
    })
    expect(await action()).toEqual({ name: 'COMPLETED', total: 2, canceled: 2 })
    expect([await stateOf(FIRST), await stateOf('normal:@mail:1000000001:a')]).toEqual(['canceled', 'canceled'])
  })

  it('is canceled once', async () => {
    await store.submit('a', 1, { lane: '@mail' })
    await cancel(FIRST)

    const { reply, changes } = await store.changesOf(() => cancel(FIRST))

    expect(reply).toBe('canceled')
    expect(changes).toEqual({})
  })

  it('is canceled once by a repeated request', async () => {
    await store.submit('a', 1, { lane: '@mail' })
    await cancel(FIRST)
    store.repeatFrom1()

    const { reply, changes } = await store.changesOf(() => cancel(FIRST))

    expect(reply).toBe('canceled')
    expect(changes).toEqual({})
  })
})

describe('a dead letter of an action', () => {
  async function letter(): Promise<void> {
    await store.submit('a', 2, { lane: '@mail' })
    const told = { attempts: 1, throttles: 0, durationMs: 1, result: '' }
    await store.claim(0, { finished: finishedAs(await store.claim(1), dead, told) })
  }

  function take(retries: boolean) {
    return takeDeadLetter(store.requests(), { jobKey: FIRST, retries, nowUs: store.nowUs })
  }

  it('runs again in its action while that lives', async () => {
    await letter()

    const { reply, changes } = await store.changesOf(() => take(true))
    const between = await action()
    const claim = await store.claim(5)

    expect(reply).toBe('retried')
    expect(changes).toMatchObject({
      'action:a:mail': { 'state.delayed': 1, 'state.failed': null },
      aside: { [FIRST]: '0,0,0,0,retry,|rs|SEND|||1' },
      delayed: { [FIRST]: 1_000_000_000 },
      dead: null,
      'dead:jobs': null,
    })
    expect(between).toEqual({ name: 'RUNNING', total: 2, waiting: 1, delayed: 1 })
    expect(jobsOf(claim).map(({ jobKey }) => jobKey)).toEqual([FIRST, 'normal:@mail:1000000001:a'])
  })

  it('has its result replaced, in its old place, when it succeeds after all', async () => {
    await store.openAction('post', { keepResults: true })
    await store.submit('a', 2, { lane: '@post' })
    const told = (result: string) => ({ attempts: 1, throttles: 0, durationMs: 1, result })
    const first = await store.claim(1)
    await store.claim(0, { finished: finishedAs(first, dead, told('failed')) })
    await store.claim(0, { finished: finishedAs(await store.claim(1), { outcome: 'succeeded' }, told('other')) })
    await takeDeadLetter(store.requests(), {
      jobKey: jobsOf(first)[0]?.jobKey ?? '',
      retries: true,
      nowUs: store.nowUs,
    })

    await store.claim(0, { finished: finishedAs(await store.claim(1), { outcome: 'succeeded' }, told('after all')) })

    expect(await store.dump()).toMatchObject({
      'results:a:post': { hash: { '1000000000': 'after all', '1000000001': 'other' } },
      'finished:a:post': { list: ['1000000000', '1000000001'] },
    })
  })

  it('runs again by itself when its action has ended, which stays as it ended', async () => {
    await letter()
    await store.sealAction('mail')
    await store.finish(await store.claim(1), { outcome: 'succeeded' })
    const before = await action()

    expect(await take(true)).toBe('retried')
    const claim = await store.claim(1)
    await store.finish(claim, { outcome: 'succeeded' })

    expect(jobsOf(claim)[0]).toMatchObject({ jobKey: expect.stringMatching(/^normal:default:0\d+:a$/) })
    expect(await action()).toEqual(before)
    expect(await store.counts('running', 'delayed', 'waiting', 'deadLettersRetried')).toEqual([0, 0, 0, 1])
  })

  it('stays failed with its action when it is discarded', async () => {
    await letter()

    expect(await take(false)).toBe('discarded')
    expect(await action()).toEqual({ name: 'RUNNING', total: 2, waiting: 1, failed: 1 })
    expect(await stateOf(FIRST)).toBe('canceled')
  })

  it('runs again once for a repeated request', async () => {
    await letter()
    store.repeatFrom1()
    await store.client.del('test:{q}:q:client:me')
    await take(true)
    store.repeatFrom1()

    const { reply, changes } = await store.changesOf(() => take(true))

    expect(reply).toBe('retried')
    expect(changes).toEqual({})
  })
})

describe('a job of an action that is read', () => {
  it('is where it is', async () => {
    await store.submit('a', 4, { lane: '@mail' })
    await store.finish(await store.claim(1), { outcome: 'succeeded' })
    await store.finish(await store.claim(1), dead)
    await store.claim(1)

    const states = []
    for (let at = 0; at < 5; at++) states.push(await stateOf(`normal:@mail:100000000${at}:a`))

    expect(states).toEqual(['succeeded', 'failed', 'running', 'waiting', undefined])
  })

  it('is not known once its action is forgotten', async () => {
    await store.submit('a', 1, { lane: '@mail' })
    await store.finish(await store.claim(1), { outcome: 'succeeded' })
    await store.sealAction('mail')
    await store.client.del('test:{q}:q:action:a:mail')

    expect(await stateOf(FIRST)).toBeUndefined()
  })
})
