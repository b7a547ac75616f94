import { describe, expect, it } from 'vitest'
import type { Action, ActionProgress, JobResult, QueueEvent } from '../../src/index.ts'
import { pause, payloads, until, useEngine, withResolvers } from './engine.ts'

const engine = useEngine()

const total = (count: number, ended: object) => ({
  total: count,
  waiting: 0,
  running: 0,
  delayed: 0,
  succeeded: 0,
  failed: 0,
  canceled: 0,
  ...ended,
})

async function all<T>(items: AsyncIterable<T>): Promise<T[]> {
  const found: T[] = []
  for await (const item of items) found.push(item)
  return found
}

async function stateOf(action: Action) {
  return (await action.view())?.state
}

describe('an action', () => {
  it('runs to its end, and says what became of its jobs', async () => {
    const queue = engine.queue({ maxRetries: 0 })
    queue.process('T', (job) => {
      if (job.payload.n % 10 === 3) throw new Error(`no ${job.payload.n % 2}`)
      return job.action
    })

    const action = await queue.submit({
      tenant: 'customer a',
      action: 'summer sale',
      type: 'T',
      jobs: payloads(100).map((_, n) => ({ payload: { n } })),
    })
    const summary = await action.finished()

    expect(action).toMatchObject({ id: 'q:customer%20a:summer%20sale', accepted: 100, duplicates: 0 })
    expect(summary).toMatchObject({
      id: action.id,
      state: 'COMPLETED',
      counts: total(100, { succeeded: 90, failed: 10 }),
      attempts: 100,
      throttles: 0,
      errors: [
        { message: 'no 1', count: 10, exampleId: expect.stringMatching(/^normal:@summer%20sale:\d+:customer%20a$/) },
      ],
      aggregate: undefined,
    })
    const { p50 = 0, p99 = 0 } = summary.durationMs ?? {}
    expect(p50).toBeLessThanOrEqual(p99)
    expect(await action.view()).toMatchObject({
      tenant: 'customer a',
      name: 'summer sale',
      type: 'T',
      isSealed: true,
      received: 100,
      etaMs: 0,
    })
  })

  it('does not complete before it is sealed, however fast its workers are', async () => {
    const queue = engine.queue()
    queue.process('T', () => {})

    const action = await queue.submit({ tenant: 'a', type: 'T', seal: false, jobs: payloads(5) })
    await until(async () => (await action.view())?.counts.succeeded === 5)
    expect(await stateOf(action)).toBe('RUNNING')
    await action.submit(payloads(3))
    await until(async () => (await action.view())?.counts.succeeded === 8)
    expect(await stateOf(action)).toBe('RUNNING')

    await action.seal()

    expect(await action.finished()).toMatchObject({ state: 'COMPLETED', counts: total(8, { succeeded: 8 }) })
    await action.seal()
    expect(await stateOf(action)).toBe('COMPLETED')
  })

  it('without jobs completes when it is sealed', async () => {
    const queue = engine.queue()

    const action = await queue.submit({ tenant: 'a', type: 'T', jobs: [] })

    expect(await action.finished()).toMatchObject({ state: 'COMPLETED', counts: total(0, {}), durationMs: undefined })
  })

  it('takes jobs of many producers', async () => {
    const queue = engine.queue()
    const other = engine.queue()
    queue.process('T', () => {})
    const action = await queue.submit({ tenant: 'a', action: 'shared', type: 'T', seal: false, jobs: [] })

    const producers = [queue, other, queue, other].map((each) =>
      each.action('shared', { tenant: 'a' }).submit(payloads(50)),
    )
    await Promise.all(producers)
    await action.seal()

    expect((await action.finished()).counts).toEqual(total(200, { succeeded: 200 }))
  })

  it('refuses jobs once it is sealed, and says so', async () => {
    const queue = engine.queue()
    const action = await queue.submit({ tenant: 'a', action: 'x', type: 'T', jobs: payloads(1) })

    await expect(action.submit(payloads(1))).rejects.toMatchObject({ code: 'SLUICE_ACTION_CLOSED', action: 'q:a:x' })
    await expect(queue.submit({ tenant: 'a', action: 'x', type: 'T', jobs: payloads(1) })).rejects.toMatchObject({
      code: 'SLUICE_ACTION_CLOSED',
    })
    expect((await action.view())?.counts.total).toBe(1)
  })

  it('refuses jobs once it is cancelled, also if it never was sealed', async () => {
    const queue = engine.queue()
    const input = { tenant: 'a', action: 'x', type: 'T' }
    const action = await queue.submit({ ...input, seal: false, jobs: payloads(1) })
    await action.cancel()

    await expect(queue.submit({ ...input, jobs: payloads(1) })).rejects.toMatchObject({ code: 'SLUICE_ACTION_CLOSED' })
  })

  it('is another one for another tenant', async () => {
    const queue = engine.queue()

    await queue.submit({ tenant: 'a', action: 'x', type: 'T', jobs: payloads(1) })
    await queue.submit({ tenant: 'b', action: 'x', type: 'T', jobs: payloads(2) })

    expect((await queue.action('x', { tenant: 'a' }).view())?.counts.total).toBe(1)
    expect((await queue.action('x', { tenant: 'b' }).view())?.counts.total).toBe(2)
  })

  it('takes turns with other actions of its tenant', async () => {
    const queue = engine.queue({ quantum: 1 })
    await queue.submit({ tenant: 'a', action: 'long', type: 'T', jobs: payloads(500) })
    await queue.submit({ tenant: 'a', action: 'short', type: 'T', jobs: payloads(3) })

    const order: (string | undefined)[] = []
    queue.process('T', (job) => void order.push(job.action), { concurrency: 1 })
    await queue.action('short', { tenant: 'a' }).finished()

    expect(order.lastIndexOf('short')).toBeLessThan(20)
    await queue.action('long', { tenant: 'a' }).cancel()
  })

  it('refuses what cannot be, and names it', async () => {
    const queue = engine.queue()
    const submit = (input: object) => queue.submit({ tenant: 'a', type: 'T', jobs: payloads(1), ...input } as never)

    await expect(submit({ maxFailureRatio: 2 })).rejects.toThrow('maxFailureRatio')
    await expect(submit({ action: '' })).rejects.toThrow('action')
    await expect(submit({ webhook: { url: 'ftp://x', secret: 'y' } })).rejects.toThrow(/webhook.url.*webhook.secret/s)
    await expect(submit({ jobs: [{ payload: 1, tenant: 'b' }] })).rejects.toThrow('tenant')
    await expect(submit({ jobs: [{ payload: 1, lane: 'x' }] })).rejects.toThrow('lane')
    await expect(submit({ sale: 1 })).rejects.toThrow('sale')
    await expect(submit({ action: 'none', jobs: 5 })).rejects.toThrow('jobs must be an iterable')
    expect(await queue.action('none', { tenant: 'a' }).view()).toBeUndefined()
    await expect(queue.action('none', { tenant: 'a' }).seal()).rejects.toMatchObject({ code: 'SLUICE_UNKNOWN_ACTION' })
    expect(await queue.action('none', { tenant: 'a' }).view()).toBeUndefined()
    expect((await queue.counts()).submitted).toBe(0)
  })
})

describe('an action that was begun before', () => {
  function* failing(count: number, after: number) {
    for (let n = 0; n < count; n++) {
      if (n === after) throw new Error('the producer died')
      yield { payload: n, id: `r-${n}` }
    }
  }

  it('goes on where its jobs have ids: known ones are skipped', async () => {
    const queue = engine.queue()
    const seen: number[] = []
    const input = { tenant: 'a', action: 'x', type: 'T' }
    await expect(queue.submit({ ...input, jobs: failing(5_000, 3_000) })).rejects.toThrow('the producer died')
    const begun = await queue.action('x', { tenant: 'a' }).view()
    expect(begun).toMatchObject({ state: 'CREATED', isSealed: false })
    expect(begun?.received).toBeGreaterThan(0)

    const action = await queue.submit({ ...input, jobs: failing(5_000, -1) })
    queue.process('T', (job) => void seen.push(job.payload), { concurrency: 50 })
    await action.finished()

    expect(action.duplicates).toBe(begun?.received)
    expect(seen.sort((a, b) => a - b)).toEqual(Array.from({ length: 5_000 }, (_, n) => n))
  })

  it('goes on after what was received where they have none', async () => {
    const queue = engine.queue()
    const seen: number[] = []
    const input = { tenant: 'a', action: 'x', type: 'T' }
    const numbers = function* (from: number, to: number) {
      for (let n = from; n < to; n++) yield { payload: n }
    }
    await queue.submit({ ...input, seal: false, jobs: numbers(0, 1_234) })

    const action = await queue.submit({ ...input, from: 'accepted', jobs: numbers(0, 2_000) })
    queue.process('T', (job) => void seen.push(job.payload), { concurrency: 50 })
    await action.finished()

    expect(action.accepted).toBe(2_000 - 1_234)
    expect(seen.sort((a, b) => a - b)).toEqual(Array.from({ length: 2_000 }, (_, n) => n))
    expect((await queue.submit({ ...input, from: 'accepted', jobs: numbers(0, 2_000) })).accepted).toBe(0)
  })

  it('is sealed by itself when nobody adds to it for sealTimeoutMs', async () => {
    const queue = engine.queue()
    queue.process('T', () => {})

    const action = await queue.submit({ tenant: 'a', type: 'T', seal: false, sealTimeoutMs: 300, jobs: payloads(2) })

    expect(await action.finished({ timeoutMs: 20_000 })).toMatchObject({ state: 'COMPLETED' })
  })
})

describe('cancelling', () => {
  it('ends what waits at once, and tells what runs', async () => {
    const queue = engine.queue()
    const started = withResolvers<void>()
    let aborted = 0
    queue.process(
      'T',
      (_, { signal }) =>
        new Promise((_resolve, reject) => {
          signal.addEventListener('abort', () => {
            aborted += 1
            reject(signal.reason as Error)
          })
          started.resolve()
        }),
      { concurrency: 4 },
    )
    const action = await queue.submit({ tenant: 'a', type: 'T', jobs: payloads(10_000) })
    await started.promise
    await until(async () => (await action.view())?.counts.running === 4)

    const view = await action.cancel()
    const summary = await action.finished()

    expect(view).toMatchObject({ state: 'CANCELED', counts: { waiting: 0, total: 10_000 } })
    expect(summary.counts).toEqual(total(10_000, { canceled: 10_000 }))
    expect(aborted).toBe(4)
    expect(await queue.counts()).toMatchObject({ waiting: 0, running: 0, canceled: 10_000 })
    expect(await action.cancel()).toMatchObject({ state: 'CANCELED' })
  })

  it('drops delayed jobs, and does not touch the other actions of the tenant', async () => {
    const queue = engine.queue()
    const kept = await queue.submit({ tenant: 'a', type: 'T', jobs: payloads(3) })
    const action = await queue.submit({
      tenant: 'a',
      type: 'T',
      jobs: [...payloads(3), { delayMs: 300 }, { delayMs: 300 }],
    })

    expect((await action.cancel()).counts).toEqual(total(5, { canceled: 5 }))
    let runs = 0
    queue.process('T', () => {
      runs += 1
    })

    expect((await kept.finished()).state).toBe('COMPLETED')
    await new Promise((resolve) => setTimeout(resolve, 600))
    expect(runs).toBe(3)
    expect(await queue.tenant('a').view()).toMatchObject({ waiting: 0, delayed: 0, running: 0 })
  })
})

describe('a failure policy', () => {
  it('failFast ends the action with the first job that failed', async () => {
    const queue = engine.queue({ maxRetries: 0 })
    const action = await queue.submit({
      tenant: 'a',
      type: 'T',
      failFast: true,
      jobs: Array.from({ length: 5_000 }, (_, n) => ({ payload: n })),
    })

    queue.process('T', (job) => {
      if (job.payload === 5) throw new Error('five')
    })

    const { state, counts } = await action.finished()
    expect(state).toBe('FAILED')
    expect(counts).toMatchObject({ failed: 1, waiting: 0, running: 0 })
    expect(counts.canceled).toBeGreaterThan(4_000)
    expect(counts.succeeded + counts.failed + counts.canceled).toBe(5_000)
  })

  it.each([
    [0.1, 'FAILED'],
    [0.2, 'COMPLETED'],
  ])('maxFailureRatio %d with a fifth of the jobs failing ends it as %s', async (maxFailureRatio, state) => {
    const queue = engine.queue({ maxRetries: 0 })
    queue.process('T', (job) => {
      if (job.payload % 5 === 0) throw new Error('five')
    })

    const action = await queue.submit({
      tenant: 'a',
      type: 'T',
      maxFailureRatio,
      jobs: Array.from({ length: 100 }, (_, n) => ({ payload: n })),
    })

    expect((await action.finished()).state).toBe(state)
  })

  it('ends the reading of jobs as well: nobody needs the others', async () => {
    const queue = engine.queue({ maxRetries: 0 })
    queue.process('T', () => {
      throw new Error('no')
    })
    async function* endless() {
      for (let n = 0; ; n++) {
        yield { payload: n }
        if (n % 100 === 0) await new Promise((resolve) => setTimeout(resolve, 5))
      }
    }

    const action = await queue.submit({ tenant: 'a', type: 'T', failFast: true, jobs: endless() })

    expect((await action.finished()).state).toBe('FAILED')
  })
})

describe('results', () => {
  it('are kept in the order of the jobs and in the order of their ends', async () => {
    const queue = engine.queue({ maxRetries: 0 })
    const release = withResolvers<void>()
    queue.process(
      'T',
      async (job) => {
        if (job.payload === 0) await release.promise
        if (job.payload === 1) throw new RangeError('one')
        return { n: job.payload }
      },
      { concurrency: 2 },
    )
    const action = await queue.submit({
      tenant: 'a',
      type: 'T',
      keepResults: true,
      jobs: Array.from({ length: 10 }, (_, n) => ({ payload: n, id: `j${n}` })),
    })
    await until(async () => (await action.view())?.counts.succeeded === 8)
    release.resolve()
    await action.finished()

    const byJob = await all(action.results())
    const byFinish = await all(action.results({ order: 'finish' }))

    expect(byJob.map(({ id }) => id)).toEqual(Array.from({ length: 10 }, (_, n) => `j${n}`))
    expect(byFinish.at(-1)?.id).toBe('j0')
    expect(byFinish.map(({ id }) => id).sort()).toEqual(byJob.map(({ id }) => id).sort())
    expect(byJob[1]).toMatchObject({ state: 'failed', error: { name: 'RangeError', message: 'one' }, attempts: 1 })
    expect(byJob[2]).toMatchObject({ state: 'succeeded', result: { n: 2 } })
  })

  it('that are too large or cannot be written do not fail their job', async () => {
    const queue = engine.queue({ maxResultBytes: 500 })
    const circle: { self?: unknown } = {}
    circle.self = circle
    queue.process('T', (job) => (job.payload === 0 ? 'x'.repeat(501) : job.payload === 1 ? circle : undefined))

    const action = await queue.submit({
      tenant: 'a',
      type: 'T',
      keepResults: true,
      jobs: [0, 1, 2].map((payload) => ({ payload })),
    })
    await action.finished()

    const [large, unwritable, nothing] = (await all(action.results())) as [JobResult, JobResult, JobResult]
    expect(large).toMatchObject({ state: 'succeeded', resultBytes: 503 })
    expect(large).not.toHaveProperty('result')
    expect(unwritable.result).toEqual({ unwritable: expect.stringContaining('circular') })
    expect(nothing).not.toHaveProperty('result')
  })

  it('go with their action: the next of its name has only its own', async () => {
    const queue = engine.queue({ keepActionsMs: 1_000, keepResultsMs: 60_000 })
    queue.process('T', (job) => job.payload)
    const submit = (payload: string) =>
      queue.submit({ tenant: 'a', action: 'x', type: 'T', keepResults: true, jobs: [{ payload }] })
    const first = await submit('old')
    await first.finished()
    await until(async () => (await first.view()) === undefined)

    const second = await submit('new')
    await second.finished()

    expect((await all(second.results({ order: 'finish' }))).map(({ result }) => result)).toEqual(['new'])
  })

  it('make one of all of them where the type has an aggregate', async () => {
    const queue = engine.queue()
    await queue.aggregate('SUM', async (results) => {
      let sum = 0
      for await (const { result } of results) sum += result as number
      return { sum }
    })
    queue.process('SUM', (job) => job.payload, { concurrency: 20 })

    const action = await queue.submit({
      tenant: 'a',
      type: 'SUM',
      jobs: Array.from({ length: 1_000 }, (_, n) => ({ payload: n })),
    })

    expect(await action.finished()).toMatchObject({ state: 'COMPLETED', aggregate: { sum: 499_500 } })
  })

  it('of an aggregate that fails are tried again, and in the end fail the action', async () => {
    const queue = engine.queue()
    let tries = 0
    await queue.aggregate('T', () => {
      tries += 1
      if (tries < 3) throw new Error('not yet')
      return tries
    })
    queue.process('T', () => {})

    const action = await queue.submit({ tenant: 'a', type: 'T', jobs: payloads(1) })

    expect(await action.finished()).toMatchObject({ state: 'COMPLETED', aggregate: 3 })
  })

  it('are aggregated by another process when one closes and has no time left for it', async () => {
    const closing = engine.sluice()
    const first = closing.queue('q', { shutdownGraceMs: 100 })
    const begun = withResolvers<void>()
    await first.aggregate('T', () => {
      begun.resolve()
      return new Promise(() => {})
    })
    first.process('T', () => {})
    const action = await first.submit({ tenant: 'a', action: 'x', type: 'T', jobs: payloads(1) })
    await begun.promise

    await closing.close()
    const second = engine.queue()
    await second.aggregate('T', () => 'made')
    second.process('T', () => {})

    // Sooner than the lease of the first would run out.
    const { state, aggregate } = await second.action(action.name, action).finished({ timeoutMs: 10_000 })
    expect({ state, aggregate }).toEqual({ state: 'COMPLETED', aggregate: 'made' })
  })
})

describe('an aggregate that nobody has any more', () => {
  it('fails its action, once a type may be unknown no longer', async () => {
    const before = engine.queue()
    await before.aggregate('T', () => 1)
    const action = await before.submit({ tenant: 'a', type: 'T', jobs: payloads(1) })

    engine
      .sluice()
      .queue('q', { unknownTypeMs: 0 })
      .process('T', () => {})

    expect(await action.finished()).toMatchObject({
      state: 'FAILED',
      aggregateError: expect.stringContaining('no worker has an aggregate'),
    })
  })
})

describe('an action without a name of the caller’s', () => {
  it('ends with what it has when its producer fails: nobody could go on with it', async () => {
    const queue = engine.queue()
    queue.process('T', () => {})
    function* failing() {
      for (let n = 0; n < 2_500; n++) yield { payload: n }
      throw new Error('the producer died')
    }

    await expect(queue.submit({ tenant: 'a', type: 'T', jobs: failing() })).rejects.toThrow('the producer died')

    await until(async () => (await queue.actions()).actions[0]?.state === 'COMPLETED')
  })
})

describe('progress', () => {
  it('comes as things change, at most ten times a second, and ends with the action', async () => {
    const queue = engine.queue()
    const action = await queue.submit({ tenant: 'a', type: 'T', jobs: payloads(60) })
    const seen: { at: number; progress: ActionProgress }[] = []
    const watching = (async () => {
      for await (const progress of action.progress()) seen.push({ at: performance.now(), progress })
    })()

    queue.process('T', () => new Promise((resolve) => setTimeout(resolve, 20)), { concurrency: 1 })
    await watching

    const done = seen.map(({ progress }) => progress.done)
    expect(done[0]).toBe(0)
    expect(done.at(-1)).toBe(60)
    expect(done).toEqual([...done].sort((a, b) => a - b))
    expect(seen.length).toBeGreaterThan(3)
    for (const [at, { at: moment }] of seen.entries()) {
      if (at > 0) expect(moment - (seen[at - 1]?.at ?? 0)).toBeGreaterThan(95)
    }
    expect(seen.at(-1)?.progress).toMatchObject({ state: 'COMPLETED', total: 60, etaMs: 0, congestion: 'NONE' })
  })

  it('stops with its signal, and waiting with its time-out', async () => {
    const queue = engine.queue()
    const action = await queue.submit({ tenant: 'a', type: 'T', jobs: payloads(1) })

    await expect(all(action.progress({ signal: AbortSignal.timeout(50) }))).rejects.toMatchObject({
      name: 'TimeoutError',
    })
    await expect(action.finished({ timeoutMs: 50 })).rejects.toMatchObject({ code: 'SLUICE_WAITED_TOO_LONG' })
  })

  it('is heard of a second queue as soon as of the first, in a process that only waits', async () => {
    const [waiting, working] = [engine.sluice(), engine.sluice()]
    for (const name of ['first', 'second']) {
      const go = withResolvers<void>()
      working.queue(name).process('T', () => go.promise)
      const action = await waiting.queue(name).submit({ tenant: 'a', type: 'T', jobs: payloads(1) })
      await until(async () => (await action.view())?.counts.running === 1)
      // A block of the process's one read takes longer.
      const progress = action.progress({ signal: AbortSignal.timeout(8_000) })
      expect((await progress.next()).value).toMatchObject({ running: 1 })
      const rest = all(progress)
      // It looks once more after a step of 100 ms, and only then waits to be told.
      await pause(300)

      go.resolve()

      expect((await rest).at(-1)).toMatchObject({ state: 'COMPLETED' })
    }
  })

  it('ends with an error for whoever waits when the process closes', async () => {
    const sluice = engine.sluice()
    const queue = sluice.queue('q')
    const action = await queue.submit({ tenant: 'a', type: 'T', jobs: payloads(1) })
    const progress = action.progress()
    await progress.next()
    const events = queue.events()
    const waiting = [action.finished(), progress.next(), events.next()].map((promise) =>
      expect(promise).rejects.toMatchObject({ code: 'SLUICE_CLOSED' }),
    )
    // They wait by now: what they read before is read.
    await until(async () => ((await engine.server.client().call('CLIENT', 'LIST')) as string).includes('cmd=xread'))

    await sluice.close()

    await Promise.all(waiting)
  })
})

describe('what failed', () => {
  it('runs again as an action of its own', async () => {
    const queue = engine.queue({ maxRetries: 0 })
    let isBroken = true
    queue.process('T', (job) => {
      if (isBroken && job.payload % 2 === 0) throw new Error('even')
    })
    const action = await queue.submit({
      tenant: 'a',
      action: 'x',
      type: 'T',
      jobs: Array.from({ length: 10 }, (_, n) => ({ payload: n })),
    })
    await action.finished()
    isBroken = false

    const retried = await action.retryFailed()

    expect(retried.id).toBe('q:a:x.retry-1')
    expect((await retried.finished()).counts).toEqual(total(5, { succeeded: 5 }))
    expect((await action.view())?.counts).toEqual(total(10, { succeeded: 5, failed: 5 }))
    expect((await queue.deadLetters.list()).total).toBe(0)
  })

  it('while its action still runs leaves no other job behind', async () => {
    const queue = engine.queue({ maxRetries: 0 })
    let isBroken = true
    queue.process('T', () => {
      if (isBroken) throw new Error('broken')
    })
    const action = await queue.submit({ tenant: 'a', action: 'x', type: 'T', seal: false, jobs: payloads(1_200) })
    await until(async () => (await action.view())?.counts.failed === 1_200)

    const [retried] = await Promise.all([action.retryFailed(), action.submit(payloads(300))])
    await until(async () => (await action.view())?.counts.failed === 1_500)
    isBroken = false
    const again = await action.retryFailed()

    const counts = [(await retried.finished()).counts.total, (await again.finished()).counts.total]
    expect(counts[0]).toBeGreaterThanOrEqual(1_200)
    expect((counts[0] ?? 0) + (counts[1] ?? 0)).toBe(1_500)
    await action.seal()
  })
})

describe('the list of actions', () => {
  it('comes newest first, in pages, of the queue or of a tenant', async () => {
    const queue = engine.queue()
    for (const name of ['one', 'two', 'three', 'four', 'five']) {
      await queue.submit({ tenant: name.length === 3 ? 'a' : 'b', action: name, type: 'T', jobs: [] })
    }

    const first = await queue.actions({ limit: 3 })
    const second = await queue.actions({ limit: 3, cursor: first.cursor as string })
    const ofTenant = await queue.actions({ tenant: 'a' })

    expect(first.actions.map(({ name }) => name)).toEqual(['five', 'four', 'three'])
    expect(second.actions.map(({ name }) => name)).toEqual(['two', 'one'])
    expect(second.cursor).toBeUndefined()
    expect(ofTenant.actions.map(({ name }) => name)).toEqual(['two', 'one'])
  })
})

describe('events', () => {
  it('tell each transition once, and go on from where they were left', async () => {
    const queue = engine.queue({ maxRetries: 1 })
    queue.process('T', (job) => {
      if (job.payload === 1) throw new Error('one')
    })
    const action = await queue.submit({ tenant: 'a', action: 'x', type: 'T', seal: false, jobs: [{ payload: 1 }] })
    await until(async () => (await action.view())?.counts.failed === 1)
    await action.seal()
    await action.finished()

    const seen: QueueEvent[] = []
    for await (const event of queue.events({ from: '0' })) {
      seen.push(event)
      if (event.type === 'action.completed') break
    }
    const rest: QueueEvent[] = []
    for await (const event of queue.events({ from: seen[2]?.id as string })) {
      rest.push(event)
      if (event.type === 'action.completed') break
    }

    expect(seen.map(({ type }) => type)).toEqual([
      'action.created',
      'action.running',
      'job.failed',
      'job.dead',
      'action.aggregating',
      'action.completed',
    ])
    expect(seen[2]).toMatchObject({ tenant: 'a', action: 'x', reason: 'one' })
    expect(rest).toEqual(seen.slice(3))
  })

  it('go on when the connection was lost', async () => {
    const queue = engine.queue()
    const events = queue.events({ from: '0' })
    await queue.submit({ tenant: 'a', action: 'x', type: 'T', seal: false, jobs: [] })
    expect((await events.next()).value).toMatchObject({ type: 'action.created', action: 'x' })
    const next = events.next()

    await engine.server.client().call('CLIENT', 'KILL', 'TYPE', 'normal', 'SKIPME', 'yes')
    await queue.submit({ tenant: 'a', action: 'y', type: 'T', seal: false, jobs: [] })

    expect((await next).value).toMatchObject({ type: 'action.created', action: 'y' })
    await events.return()
  })
})
