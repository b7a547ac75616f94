import { describe, expect, it } from 'vitest'
import { finishedAs, jobsOf, record } from '../../../test/support/script-store/script-jobs.ts'
import { useScriptStore } from '../../../test/support/script-store/use-script-store.ts'
import type { ClaimReply, Finish } from './finish-and-claim.ts'
import { takeDeadLetter } from './take-dead-letter.ts'

/** What finish-and-claim does with the jobs of an action. */

const store = useScriptStore()

const dead: Finish = { outcome: 'dead', reason: 'failed', error: '{"message":"no"}' }
const retry: Finish = { outcome: 'retry', delayMs: 1_000, error: '{"message":"no"}' }

/** What an action shows of its state, apart from times. */
async function action(name = 'mail'): Promise<Record<string, unknown>> {
  const content = (await store.dump())[`action:a:${name}`] as { hash: Record<string, unknown> }
  const names = ['name', 'total', 'waiting', 'running', 'delayed', 'succeeded', 'failed', 'canceled']
  return Object.fromEntries(
    names.flatMap((each) => (content.hash[`state.${each}`] ? [[each, content.hash[`state.${each}`]]] : [])),
  )
}

async function events(): Promise<string[]> {
  const { events: content } = await store.dump()
  return ((content as { stream: string[][] } | undefined)?.stream ?? []).map(([, type]) => type as string)
}

function finishInAction(claim: ClaimReply, finish: Finish, result = '', durationMs = 5): Promise<ClaimReply> {
  const told = { attempts: 1, throttles: 0, durationMs, result }
  return store.claim(0, { finished: finishedAs(claim, finish, told) })
}

describe('the life of an action', () => {
  it('starts with the first claim of a job, and counts what runs', async () => {
    await store.openAction('mail')
    await store.submit('a', 3, { lane: '@mail' })
    store.now += 1_000

    const { changes } = await store.changesOf(() => store.claim(2))

    expect(changes).toEqual({
      'action:a:mail': {
        'state.name': 'RUNNING',
        'state.running': 2,
        'state.started': 1_000_001_000,
        'state.waiting': 1,
      },
      'claim:1000001000': {
        'normal:@mail:1000000000:a': '|rs|SEND|||1',
        'normal:@mail:1000000001:a': '|rs|SEND|||2',
      },
      'client:me': {
        '(expires)': true,
        '1': '1',
      },
      events: ['type action.running tenant a action mail'],
      'lane:normal:@mail:a': ['|rs|SEND|||3'],
      leases: {
        '1000001000:me': 1_015_001_000,
      },
      queue: {
        claimed: '2',
        'state.fence': 1_000_001_000,
        'state.running': 2,
        'state.running:normal': 2,
        'state.turns': 1,
        'state.virtual:normal': 2_000_000,
        'state.waiting': 1,
        'state.snapshot_due': 1_010_001_000,
        'state.starts': 2,
      },
      running: {
        a: '2',
      },
      'tenant:a': {
        'normal.reached': 2000,
        'normal.longest': 1000,
        'normal.received': 2,
        'normal.since': 1_000_001_000,
        'normal.used': 2000,
        'state.waiting': 1,
      },
    })
  })

  it('completes with the last job of a sealed one, once', async () => {
    await store.openAction('mail')
    await store.submit('a', 2, { lane: '@mail' })
    await store.sealAction('mail')
    const one = await store.claim(1)
    const two = await store.claim(1)
    await finishInAction(one, { outcome: 'succeeded' })
    store.now += 1_000

    const last = await store.changesOf(() => finishInAction(two, { outcome: 'succeeded' }))
    const again = await store.changesOf(() => finishInAction(two, { outcome: 'succeeded' }))

    expect(last.changes).toEqual({
      'action:a:mail': {
        '(expires)': true,
        'state.attempts': 2,
        'state.ended': 1_000_001_000,
        'state.last_end': 1_000_001_000,
        'state.name': 'COMPLETED',
        'state.running': null,
        'state.succeeded': 2,
      },
      'claim:1000000001': null,
      'client:me': {
        '4': '4',
      },
      events: ['type action.aggregating tenant a action mail', 'type action.completed tenant a action mail'],
      leases: null,
      queue: {
        'state.running': null,
        'state.running:normal': null,
        succeeded: '2',
      },
      running: null,
      'stats:a:mail': {
        '(expires)': true,
        d65: '2',
      },
      'tenant:a': { 'pace.uncounted': 2 },
    })
    expect(again.reply.stale).toEqual([0])
    expect(again.changes).toEqual({ 'client:me': { '5': '5' } })
    expect(await events()).toEqual(
      ['created', 'dispatched', 'running', 'aggregating', 'completed'].map((each) => `action.${each}`),
    )
  })

  it('does not complete before it is sealed, however fast its workers are', async () => {
    await store.openAction('mail')
    await store.submit('a', 1, { lane: '@mail' })
    await finishInAction(await store.claim(1), { outcome: 'succeeded' })

    expect(await action()).toEqual({ name: 'RUNNING', total: 1, succeeded: 1 })
    expect(await store.submit('a', 1, { lane: '@mail' })).toMatchObject({ accepted: 1, closed: [] })
  })

  it('waits for its aggregate where its type has one of its own', async () => {
    await store.client.hset('test:{q}:q:queue', 'aggregated:SEND', '1')
    await store.openAction('mail')
    await store.submit('a', 1, { lane: '@mail' })
    await store.sealAction('mail')

    const { reply, changes } = await store.changesOf(async () =>
      finishInAction(await store.claim(1), { outcome: 'succeeded' }, 'r'),
    )

    expect(await action()).toEqual({ name: 'AGGREGATING', total: 1, succeeded: 1 })
    expect(changes).toMatchObject({ duties: { 'aggregate:a:mail': 1_000_000_000 } })
    expect(reply.hasDuties).toBe(true)
  })

  it('may complete with failed jobs', async () => {
    await store.openAction('mail')
    await store.submit('a', 1, { lane: '@mail' })
    await store.sealAction('mail')
    await finishInAction(await store.claim(1), dead)

    expect(await action()).toEqual({ name: 'COMPLETED', total: 1, failed: 1 })
  })

  it('completes two actions with one request', async () => {
    for (const name of ['mail', 'post']) {
      await store.openAction(name)
      await store.submit('a', 1, { lane: `@${name}` })
      await store.sealAction(name)
    }

    await finishInAction(await store.claim(2), { outcome: 'succeeded' })

    expect([await action('mail'), await action('post')]).toMatchObject([{ name: 'COMPLETED' }, { name: 'COMPLETED' }])
  })
})

describe('jobs that come back', () => {
  it.each([
    ['retried', retry, { delayed: 1 }],
    ['throttled', { outcome: 'throttled', delayMs: 1_000 }, { delayed: 1 }],
    ['of an unknown type', { outcome: 'unknown', delayMs: 1_000 }, { delayed: 1 }],
    ['returned', { outcome: 'returned' }, { waiting: 1 }],
    ['released', { outcome: 'released' }, { waiting: 1 }],
  ] as const)('count where they are and run again: %s', async (_, finish, counts) => {
    await store.openAction('mail')
    await store.submit('a', 1, { lane: '@mail' })
    await store.sealAction('mail')

    await store.finish(await store.claim(1), finish)
    const between = await action()
    store.now += 1_000_000
    const claim = await store.claim(1)
    const running = await action()
    await finishInAction(claim, { outcome: 'succeeded' })

    expect(between).toEqual({ name: 'RUNNING', total: 1, ...counts })
    expect(running).toEqual({ name: 'RUNNING', total: 1, running: 1 })
    expect(await action()).toEqual({ name: 'COMPLETED', total: 1, succeeded: 1 })
  })

  it('wait again after a stall, later each time, and fail after the last', async () => {
    await store.begin({ maxStalls: 2 })
    await store.openAction('mail')
    await store.submit('a', 1, { lane: '@mail' })
    await store.sealAction('mail')
    const counts: unknown[] = []
    for (let stall = 0; stall < 3; stall++) {
      await store.claim(1)
      store.now += 15_000_000
      await store.claim(0)
      counts.push(await action())
      store.now += 1_000_000
    }

    expect(counts).toEqual([
      { name: 'RUNNING', total: 1, waiting: 1 },
      { name: 'RUNNING', total: 1, delayed: 1 },
      { name: 'COMPLETED', total: 1, failed: 1 },
    ])
    expect((await store.dump())['stats:a:mail']).toMatchObject({
      hash: { estalled: '1|normal:@mail:1000000000:a' },
      ttl: true,
    })
  })

  it('end as canceled when their lease runs out after their action was cancelled', async () => {
    await store.openAction('mail')
    await store.submit('a', 1, { lane: '@mail' })
    await store.claim(1)
    await store.cancelAction('mail')
    store.now += 15_000_000

    await store.claim(1)

    expect(await action()).toEqual({ name: 'CANCELED', total: 1, canceled: 1 })
    expect(await store.counts('waiting', 'running', 'canceled', 'stalled')).toEqual([0, 0, 1, 0])
  })
})

describe('an action that may fail', () => {
  it('fails with its first failed job when it is to fail fast, and drops all that waits', async () => {
    await store.openAction('mail', { failFast: true })
    await store.submit('a', 3, { lane: '@mail' })
    const claim = await store.claim(1)
    const running = await store.claim(1, {}, 'other')

    const { changes } = await store.changesOf(() => finishInAction(claim, dead))
    await finishInAction(running, { outcome: 'succeeded' })

    expect(changes).toMatchObject({
      'action:a:mail': { 'state.name': 'FAILED', 'state.canceled': 1, 'state.failed': 1, 'state.waiting': null },
      'lane:normal:@mail:a': null,
      'wake:other': ['cancel-action:@mail:a'],
    })
    expect(await action()).toEqual({ name: 'FAILED', total: 3, failed: 1, canceled: 1, succeeded: 1 })
  })

  it('does not fail for a job that is tried again', async () => {
    await store.openAction('mail', { failFast: true })
    await store.submit('a', 1, { lane: '@mail' })
    await store.finish(await store.claim(1), retry)

    expect(await action()).toEqual({ name: 'RUNNING', total: 1, delayed: 1 })
  })

  it('fails once more than the ratio have failed, of all jobs there will be', async () => {
    await store.openAction('mail', { maxFailureRatio: 0.5 })
    await store.submit('a', 4, { lane: '@mail' })
    await finishInAction(await store.claim(1), dead)
    await finishInAction(await store.claim(1), dead)
    await store.sealAction('mail')
    const half = await action()
    await finishInAction(await store.claim(1), dead)

    expect(half).toEqual({ name: 'RUNNING', total: 4, waiting: 2, failed: 2 })
    expect(await action()).toEqual({ name: 'FAILED', total: 4, failed: 3, canceled: 1 })
  })

  it('drops jobs that come back in the very request that fails it', async () => {
    await store.openAction('mail', { failFast: true })
    await store.submit('a', 3, { lane: '@mail' })
    const claim = await store.claim(3)
    const [first, second, third] = finishedAs(claim, dead)
    if (!first || !second || !third) throw new Error('three jobs were to be claimed')
    const others = [
      { ...second, finish: { outcome: 'released' } as const },
      { ...third, finish: { outcome: 'retry', delayMs: 0, error: '{}' } as const },
    ]

    await store.claim(5, { finished: [first, ...others] })
    store.now += 1
    await store.claim(5)

    expect(await action()).toEqual({ name: 'FAILED', total: 3, failed: 1, canceled: 2 })
    expect(await store.counts('waiting', 'delayed', 'running')).toEqual([0, 0, 0])
    const left = Object.keys(await store.dump())
    expect(left.filter((key) => /^(aside|delayed|front|lane|trash|leases|claim|running)/.test(key))).toEqual([])
  })
})

describe('what an action keeps of its jobs', () => {
  it('has results in the order in which the jobs ended', async () => {
    await store.openAction('mail', { keepResults: true })
    await store.submit('a', 3, { lane: '@mail' })
    const claims = [await store.claim(1), await store.claim(1), await store.claim(1)] as const
    const kept = claims[0].kept

    await finishInAction(claims[2], { outcome: 'succeeded' }, 'third')
    await finishInAction(claims[0], dead, 'first')
    const { changes } = await store.changesOf(() => finishInAction(claims[1], { outcome: 'succeeded' }, 'second'))

    expect(kept).toEqual(['@mail:a'])
    expect(changes).toMatchObject({
      'results:a:mail': { '1000000001': 'second' },
      'finished:a:mail': ['1000000002', '1000000000', '1000000001'],
    })
  })

  it('has no results where they are not wanted', async () => {
    await store.openAction('mail')
    await store.submit('a', 1, { lane: '@mail' })
    const claim = await store.claim(1)

    await finishInAction(claim, { outcome: 'succeeded' }, 'r')

    expect(claim.kept).toEqual([])
    expect(await store.dump()).not.toHaveProperty('results:a:mail')
  })

  it('has attempts, throttles and durations of all that ended', async () => {
    await store.openAction('mail')
    await store.submit('a', 3, { lane: '@mail' })
    await finishInAction(await store.claim(1), { outcome: 'succeeded' }, '', 1)
    await finishInAction(await store.claim(1), { outcome: 'succeeded' }, '', 1_000)

    const { changes } = await store.changesOf(async () => finishInAction(await store.claim(1), dead, '', 1))

    expect(changes).toMatchObject({
      'action:a:mail': { 'state.attempts': 3, 'state.errors': 1 },
      'stats:a:mail': { d48: '2', eno: '1|normal:@mail:1000000002:a' },
      'letters:a:mail': ['normal:@mail:1000000002:a'],
    })
  })

  it('counts equal errors together with one example, and no more kinds of them than fifty', async () => {
    await store.openAction('mail')
    await store.submit('a', 54, { lane: '@mail' })
    const claim = await store.claim(54)
    const finished = finishedAs(claim, dead, { attempts: 1, throttles: 0, durationMs: 1, result: '' }).map(
      (job, at) => ({
        ...job,
        finish: { ...dead, error: JSON.stringify({ message: at < 2 ? 'same' : `error ${at}` }) } as Finish,
      }),
    )

    await store.claim(0, { finished })

    const { hash } = (await store.dump())['stats:a:mail'] as { hash: Record<string, string> }
    expect(hash.esame).toBe('2|normal:@mail:1000000000:a')
    expect(Object.keys(hash).filter((field) => field.startsWith('e'))).toHaveLength(50)
    expect(hash.o).toBe(`3|${jobsOf(claim)[51]?.jobKey}`)
  })

  it('tells errors apart by the start of their first line, without half a character at its end', async () => {
    await store.openAction('mail')
    await store.submit('a', 2, { lane: '@mail' })
    const message = `${'x'.repeat(199)}ü and more`

    for (const end of ['a', 'b\nc']) {
      const error = JSON.stringify({ message: message + end })
      await finishInAction(await store.claim(1), { outcome: 'dead', reason: 'failed', error })
    }

    const { hash } = (await store.dump())['stats:a:mail'] as { hash: Record<string, string> }
    expect(Object.entries(hash).filter(([field]) => field.startsWith('e'))).toEqual([
      [`e${'x'.repeat(199)}`, '2|normal:@mail:1000000000:a'],
    ])
  })

  it('goes as long after the end as the queue says, also what its last jobs leave later', async () => {
    await store.openAction('mail', { keepResults: true })
    await store.submit('a', 1, { lane: '@mail' })
    const claim = await store.claim(1)
    await store.cancelAction('mail')

    await finishInAction(claim, { outcome: 'succeeded' }, 'r')

    const dump = await store.dump()
    for (const key of ['action', 'stats', 'results', 'finished']) expect(dump[`${key}:a:mail`]).toHaveProperty('ttl')
  })
})

it('lets what is left of a forgotten action end as nothing', async () => {
  await store.openAction('mail')
  await store.submit('a', 2, { lane: '@mail' })
  const [one, two] = [await store.claim(1), await store.claim(1)]
  await store.cancelAction('mail')
  await store.client.del('test:{q}:q:action:a:mail')

  await finishInAction(one, { outcome: 'succeeded' }, 'r')
  await finishInAction(two, dead, 'r')

  expect(await store.counts('running', 'waiting', 'succeeded', 'canceled')).toEqual([0, 0, 1, 1])
  expect(Object.keys(await store.dump()).filter((key) => key.endsWith(':a:mail'))).toEqual([])
})

it('drops what came back to an action that is gone, and leaves nothing of it to other calls', async () => {
  await store.openAction('mail')
  await store.submit('a', 2, { lane: '@mail' })
  await store.finish(await store.claim(1), { outcome: 'released' })
  await store.client.del('test:{q}:q:action:a:mail')

  const claims = [await store.claim(1), await store.claim(1)]

  expect(claims.map(({ word }) => word)).toEqual(['claimed', 'claimed'])
  for (const claim of claims) await finishInAction(claim, { outcome: 'succeeded' }, 'r')
  expect(await store.counts('running', 'waiting')).toEqual([0, 0])
})

it('keeps jobs of a forgotten action out of another of the same name', async () => {
  await store.openAction('mail')
  await store.submit('a', 3, { lane: '@mail' })
  await store.submit('a', 0, { lane: '@mail', kind: 'later', entries: ['+60000000', '', record(1)] })
  const claims = [await store.claim(1), await store.claim(1), await store.claim(1)] as const
  await store.finish(claims[0], dead)
  await store.cancelAction('mail')
  await store.client.del('test:{q}:q:action:a:mail')
  store.now += 10_000
  await store.openAction('mail')
  await store.submit('a', 1, { lane: '@mail' })

  await finishInAction(claims[1], { outcome: 'succeeded' })
  await store.finish(claims[2], { outcome: 'released' })
  const letter = jobsOf(claims[0])[0]?.jobKey ?? ''
  await takeDeadLetter(store.requests(), { jobKey: letter, retries: true, nowUs: store.nowUs })
  store.now += 60_000_000
  const claim = await store.claim(5)

  expect(await action()).toEqual({ name: 'RUNNING', total: 1, running: 1 })
  expect(jobsOf(claim).map(({ jobKey }) => jobKey.split(':')[1])).toEqual(['@mail', 'default'])
})

it('answers a repeated request from memory and changes nothing', async () => {
  await store.openAction('mail', { keepResults: true })
  await store.submit('a', 2, { lane: '@mail' })
  const first = await store.claim(1)
  store.repeatFrom1()

  const { reply, changes } = await store.changesOf(() => store.claim(1))

  expect(reply).toEqual(first)
  expect(changes).toEqual({})
})

it('lets events go that are past their time, a page of the stream at once', async () => {
  for (let at = 0; at < 40; at++) {
    await store.openAction(`mail-${at}`)
    await store.sealAction(`mail-${at}`)
  }
  const before = await store.client.xlen('test:{q}:q:events')
  // Ids of events are of the server's own time.
  store.now = (Date.now() + 25 * 3_600_000) * 1_000
  await store.openAction('mail')

  expect(before).toBe(160)
  expect(await store.client.xlen('test:{q}:q:events')).toBeLessThan(100)
})

it('tells of a failed try with the start of its error', async () => {
  await store.openAction('mail')
  await store.submit('a', 1, { lane: '@mail' })
  const error = JSON.stringify({ message: `${'x'.repeat(199)}ü and more\nand more` })

  const { changes } = await store.changesOf(async () =>
    store.finish(await store.claim(1), { outcome: 'retry', delayMs: 1_000, error }),
  )

  expect(changes.events).toEqual([
    'type action.running tenant a action mail',
    `type job.failed tenant a action mail job normal:@mail:1000000000:a reason ${'x'.repeat(199)}`,
  ])
})

it('keeps no more events than the queue says, give or take a page of the stream', async () => {
  await store.begin({ maxEvents: 100 })
  for (let at = 0; at < 150; at++) {
    await store.openAction(`mail-${at}`)
    await store.sealAction(`mail-${at}`)
  }

  expect(await store.client.xlen('test:{q}:q:events')).toBeLessThan(300)
})
