import { describe, expect, it } from 'vitest'
import { finishedAs, record } from '../../../test/support/script-store/script-jobs.ts'
import { useScriptStore } from '../../../test/support/script-store/use-script-store.ts'
import { idDigest } from '../names.ts'
import { cancelJob } from './cancel-job.ts'
import { changeTenant } from './change-tenant.ts'
import { explainJob } from './explain-job.ts'
import type { Finish } from './finish-and-claim.ts'
import { addressOf, readJob } from './read-job.ts'

const store = useScriptStore()

const ID = 'normal:default:1000000000:a'

function read(id = ID, tenant = 'a') {
  return readJob(store.requests(), addressOf(id, tenant), store.nowUs)
}

async function runAs(finish: Finish): Promise<void> {
  const claim = await store.claim(1)
  await store.claim(0, { finished: finishedAs(claim, finish) })
}

it('finds a job in every state of its life, and changes nothing', async () => {
  await store.submit('a', 1)
  const waiting = await store.changesOf(() => read())
  const claim = await store.claim(1)
  const running = await store.changesOf(() => read())
  await store.claim(0, {
    finished: finishedAs(claim, { outcome: 'retry', delayMs: 1_000, error: '{"name":"E","message":"m"}' }),
  })
  const delayed = await store.changesOf(() => read())
  store.now += 1_000_000
  await store.claim(0)
  const due = await store.changesOf(() => read())
  await runAs({ outcome: 'succeeded' })
  const succeeded = await store.changesOf(() => read())

  expect(waiting.reply).toEqual({
    dueMs: undefined,
    jobKey: 'normal:default:1000000000:a',
    reason: '',
    record: {
      createdAt: 1000,
      givenId: undefined,
      cost: 1,
      history: {
        attempts: 0,
        error: undefined,
        reason: '',
        stalls: 0,
        throttles: 0,
        since: 0,
      },
      options: {},
      payload: '1',
      type: 'SEND',
    },
    state: 'waiting',
  })
  expect(delayed.reply).toEqual({
    dueMs: 1_001_000,
    jobKey: 'normal:default:1000000000:a',
    reason: '',
    record: {
      createdAt: 1000,
      givenId: undefined,
      cost: 1,
      history: {
        attempts: 1,
        error: {
          message: 'm',
          name: 'E',
        },
        reason: 'retry',
        stalls: 0,
        throttles: 0,
        since: 1_000_000,
      },
      options: {},
      payload: '1',
      type: 'SEND',
    },
    state: 'delayed',
  })
  expect(succeeded.reply).toEqual({
    dueMs: undefined,
    jobKey: 'normal:default:1000000000:a',
    reason: '',
    record: undefined,
    state: 'succeeded',
  })
  const all = [waiting, running, delayed, due, succeeded]
  expect(all.map(({ reply }) => reply?.state)).toEqual(['waiting', 'running', 'delayed', 'waiting', 'succeeded'])
  expect(all.map(({ changes }) => changes)).toEqual([{}, {}, {}, {}, {}])
})

it('finds a dead letter with its reason', async () => {
  await store.submit('a', 1)
  await runAs({ outcome: 'dead', reason: 'discarded', error: '{"name":"E","message":"m"}' })

  expect(await read()).toEqual({
    dueMs: undefined,
    jobKey: 'normal:default:1000000000:a',
    reason: 'discarded',
    record: {
      createdAt: 1000,
      givenId: undefined,
      cost: 1,
      history: {
        attempts: 1,
        error: {
          message: 'm',
          name: 'E',
        },
        reason: 'discarded',
        stalls: 0,
        throttles: 0,
        since: 0,
      },
      options: {},
      payload: '1',
      type: 'SEND',
    },
    state: 'failed',
  })
})

it('finds a running job that stood on another level than its own', async () => {
  await store.submit('a', 1, { level: 'low' })
  await changeTenant(store.requests(), 'a', { level: 'high' }, store.nowUs)
  await store.claim(1)

  expect(await read('low:default:1000000000:a')).toMatchObject({
    state: 'running',
    record: { type: 'SEND', payload: '1' },
  })
})

it('finds a cancelled job, waiting or delayed before', async () => {
  await store.submit('a', 1)
  await store.submit('a', 0, { kind: 'later', entries: ['+5000', '', record(2)] })
  await cancelJob(store.requests(), addressOf(ID, 'a'), store.nowUs)
  await cancelJob(store.requests(), addressOf('normal:default:01000000002:a', 'a'), store.nowUs)

  expect((await read())?.state).toBe('canceled')
  expect((await read('normal:default:01000000002:a'))?.state).toBe('canceled')
})

it('finds a scheduled job with its instant', async () => {
  await store.submit('a', 0, { kind: 'later', entries: ['+5000', '', record(1)] })

  expect(await read('normal:default:01000000000:a')).toMatchObject({ state: 'delayed', dueMs: 1_000_005 })
})

it('finds a job by the id given to it, within its tenant, for as long as the id is kept', async () => {
  await store.begin({ keepIdsMs: 2_000 })
  await store.submit('a', 0, { kind: 'named', entries: [idDigest('a', 'order-1'), record(1)] })

  const found = await read('order-1')
  const ofAnother = await read('order-1', 'b')
  store.now += 2_000_000

  expect(found).toMatchObject({ jobKey: ID, state: 'waiting' })
  expect(ofAnother).toBeUndefined()
  expect(await read('order-1')).toBeUndefined()
})

it('knows nothing of jobs that were never submitted', async () => {
  await store.submit('a', 1)

  expect(await read('normal:default:1000000001:a')).toBeUndefined()
  expect(await read('normal:news:1:a')).toBeUndefined()
  expect(await read('normal:default:5:b')).toBeUndefined()
  expect(await read('never-given')).toBeUndefined()
})

it('knows nothing of numbers from before the queue was made, though the lane has had jobs since', async () => {
  await store.submit('a', 1)
  await store.finish(await store.claim(1), { outcome: 'succeeded' })

  expect(await read('normal:default:1000000000:a')).toMatchObject({ state: 'succeeded' })
  expect(await read('normal:default:999999999:a')).toBeUndefined()
  expect(await read('normal:default:5:a')).toBeUndefined()
})

it('knows the first job of a queue that was made before the clock of the server was put back', async () => {
  store.now -= 5_000_000
  await store.submit('a', 1)
  await store.finish(await store.claim(1), { outcome: 'succeeded' })

  expect(await read('normal:default:1000000000:a')).toMatchObject({ state: 'succeeded' })
})

it('knows no job in a store that does not know the queue, out of memory or not', async () => {
  await store.empty()

  expect(await store.outOfMemory(() => read())).toBeUndefined()
})

describe('a job that runs among more claims than a script looks through', () => {
  /** Leases of claims whose jobs are all others. */
  async function claimsAround(untilUs: (index: number) => number): Promise<void> {
    const members = Array.from({ length: 4_500 }, (_, index) => [String(untilUs(index)), `${index}:other`])
    await store.client.zadd(store.keys().leases, ...members.flat())
  }

  it.each([
    ['that run out before', (index: number) => 1_000_000_001 + index],
    ['that run out at one moment before', () => 1_000_000_001],
    ['that run out after', (index: number) => 2_000_000_000 + index],
  ])('is found behind those %s, and is cancelled', async (_, untilUs) => {
    await store.submit('a', 2)
    await store.claim(1)
    await claimsAround(untilUs)

    const { state } = (await read()) ?? {}
    const { job } = (await explainJob(store.requests(), addressOf(ID, 'a'), store.nowUs))?.facts ?? {}
    const canceled = await cancelJob(store.requests(), addressOf(ID, 'a'), store.nowUs)

    expect([state, job?.state, canceled]).toEqual(['running', 'running', 'canceling'])
  })

  it('has succeeded when it is under none of them', async () => {
    await store.submit('a', 1)
    await runAs({ outcome: 'succeeded' })
    await claimsAround((index) => 2_000_000_000 + index)

    expect(await read()).toMatchObject({ state: 'succeeded' })
  })
})

it('shows of a dead letter past its time only how the job ended', async () => {
  await store.begin({ keepDeadLettersMs: 3_600_000 })
  await store.submit('a', 1)
  await runAs({ outcome: 'dead', reason: 'discarded', error: '{"name":"E","message":"m"}' })
  store.now += 3_600_000_000

  expect(await read()).toMatchObject({ state: 'failed', reason: 'discarded', record: undefined })
})
