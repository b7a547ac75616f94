import { describe, expect, it } from 'vitest'
import { describeExplanation as inWords } from '../../src/engine/explain/explanation.ts'
import { type Explanation, PermanentError, type Queue, type QueueOptions } from '../../src/index.ts'
import { until } from '../support/until.ts'
import { useEngine } from './engine.ts'

const engine = useEngine()

const DAY = 86_400_000

/** Each gate and whether it lets work pass: `queue+ level+ tenant- …`. */
function gatesOf(explanation: Explanation | undefined): string {
  return (explanation?.gates ?? []).map(({ gate, open }) => `${gate}${open ? '+' : '-'}`).join(' ')
}

/** A queue with one job of tenant `a` that waits, and nobody who claims. */
async function oneWaiting(queue: Queue): Promise<string> {
  return (await queue.submit({ type: 'T', tenant: 'a' })).id
}

describe('a tenant', () => {
  it('that could run waits for a worker: nobody claims', async () => {
    const queue = engine.queue()
    await oneWaiting(queue)

    const explanation = await queue.explain({ tenant: 'a' })

    expect(gatesOf(explanation)).toBe('queue+ level+ tenant+ work+ lane+ parked+ turn+ workers-')
    expect(explanation).toMatchObject({ tenant: 'a', level: 'normal', mayRunAt: undefined })
    expect(explanation.binds).toMatchObject({ gate: 'workers', idle: 0, busy: 0, lastClaimAt: undefined })
    expect(explanation.text).toContain('Nobody claims')
  })

  it('waits for the queue first, then for its level, then for its own pause', async () => {
    const queue = engine.queue()
    await oneWaiting(queue)
    await queue.tenant('a').pause()
    await queue.pause({ level: 'normal' })
    await queue.pause()

    const binding: unknown[] = []
    for (const resume of [() => queue.resume(), () => queue.resume({ level: 'normal' }), () => undefined]) {
      const { binds, since, mayRunAt, at } = await queue.explain({ tenant: 'a' })
      binding.push(binds?.gate)
      expect(since).toBeLessThanOrEqual(at)
      expect(mayRunAt).toBeUndefined()
      await resume()
    }

    expect(binding).toEqual(['queue', 'level', 'tenant'])
  })

  it('with nothing to do has nothing that could run', async () => {
    const queue = engine.queue()
    await queue.submit({ type: 'T', tenant: 'a', delayMs: 60_000 })

    const explanation = await queue.explain({ tenant: 'a' })

    expect(explanation.binds).toMatchObject({ gate: 'work', waiting: 0, delayed: 1 })
    expect(explanation.level).toBeUndefined()
  })

  it('is parked by a limit: which, since when and until when, and the limit says the same', async () => {
    const queue = engine.queue({ limits: { tenant: { kind: 'bucket', limit: 1, windowMs: 60_000 } } })
    await queue.submit({ jobs: [1, 2].map((payload) => ({ type: 'T', tenant: 'a', payload })) })
    await queue.claim(1)

    const explanation = await queue.explain({ tenant: 'a' })

    expect(gatesOf(explanation)).toBe('queue+ level+ tenant+ work+ lane+ parked- limit- turn+ workers-')
    expect(explanation.binds).toMatchObject({ gate: 'parked', limit: 'tenant', reason: 'limit' })
    const { since, at, binds } = explanation
    expect(at - (since ?? 0)).toBeLessThan(10_000)
    expect((binds?.until ?? 0) - at).toBeGreaterThan(30_000)
    expect(explanation.gates.find(({ gate }) => gate === 'limit')).toMatchObject({ scope: 'tenant', remaining: 0 })
  })

  it('waits for a slot without an instant', async () => {
    const queue = engine.queue({ limits: { tenant: { kind: 'concurrency', max: 1 } } })
    await queue.submit({ jobs: [1, 2].map((payload) => ({ type: 'T', tenant: 'a', payload })) })
    await queue.claim(1)

    const { binds, mayRunAt } = await queue.explain({ tenant: 'a' })

    expect(binds).toMatchObject({ gate: 'parked', limit: 'tenant', until: undefined })
    expect(mayRunAt).toBeUndefined()
  })

  it('waits for a limit of the queue, which parks nobody', async () => {
    const queue = engine.queue({ limits: { queue: { kind: 'bucket', limit: 1, windowMs: 60_000 } } })
    await queue.submit({ jobs: [1, 2].map((payload) => ({ type: 'T', tenant: 'a', payload })) })
    await queue.claim(1)

    const { binds, at } = await queue.explain({ tenant: 'a' })

    expect(binds).toMatchObject({ gate: 'limit', scope: 'queue', kind: 'bucket', limit: 1, used: 1, remaining: 0 })
    expect(binds?.until).toBeGreaterThan(at + 30_000)
    expect(binds?.since).toBeGreaterThan(at - 10_000)
    expect(binds?.since).toBeLessThanOrEqual(at)
  })

  it.each(['queue', 'high'] as const)(
    'waits for a limit of the %s that has less left than its next job costs',
    async (scope) => {
      const window = { kind: 'window', limit: 10, windowMs: DAY } as const
      const queue = engine.queue({ limits: scope === 'queue' ? { queue: window } : { levels: { high: window } } })
      const job = { type: 'T', tenant: 'a', level: 'high', cost: 7 } as const
      await queue.submit({ jobs: [job, { ...job, id: 'second' }] })
      await queue.claim(2)

      for (const explanation of [
        await queue.explain({ tenant: 'a' }),
        await queue.explain({ tenant: 'a', job: 'second' }),
      ]) {
        const { binds, at, text } = explanation as Explanation
        expect(binds).toMatchObject({ gate: 'limit', scope, used: 7, remaining: 3, cost: 7, reason: 'limit' })
        expect(text).toContain('does not grant the 7 permits that the job costs')
        expect(binds?.since).toBeLessThanOrEqual(at)
        expect(binds?.until).toBe(Math.ceil(at / DAY) * DAY)
      }
    },
  )

  it('says what a limit grants now that an upstream has slowed down, and why', async () => {
    const queue = engine.queue({ limits: { tenant: '1000/s' } })
    await queue.submit({ jobs: [1, 2].map((payload) => ({ type: 'T', tenant: 'a', payload })) })
    const [job] = await queue.claim(1)
    job?.learn({ status: 429, headers: { 'retry-after': '60' } })
    await job?.succeed()

    const { gates } = await queue.explain({ tenant: 'a' })

    const gate = gates.find((each) => each.gate === 'limit')
    expect(gate).toMatchObject({ limit: 1_000, isEstimated: false })
    expect(gate).toHaveProperty('effectivePerSecond', expect.closeTo(0.7 * 943.8, 0))
    expect(gate?.text).toMatch(/bucket of 1000 at 66\d\/s \(its upstream pushed back\), /)
  })

  it.each<[string, NonNullable<QueueOptions['limits']>]>([
    ['a window of the queue is used up', { queue: { kind: 'window', limit: 1, windowMs: 86_400_000 } }],
    ['slots of the queue are used up', { queue: { kind: 'concurrency', max: 1 } }],
    ['a quota of the queue waits for its first answer', { queue: { kind: 'quota' } }],
    ['slots of its level are used up', { levels: { normal: { kind: 'concurrency', max: 1 } } }],
    ['a quota of its level waits for its first answer', { levels: { normal: { kind: 'quota' } } }],
  ])('knows since when %s', async (_, limits) => {
    const queue = engine.queue({ limits })
    await queue.submit({ jobs: [1, 2].map((payload) => ({ type: 'T', tenant: 'a', payload })) })
    await queue.claim(1)

    const { binds, at } = await queue.explain({ tenant: 'a' })

    expect(binds).toMatchObject({ gate: 'limit', reason: 'limit' })
    expect(binds?.since).toBeGreaterThan(at - 10_000)
    expect(binds?.since).toBeLessThanOrEqual(at)
  })

  it('that an upstream has pushed back is held by it, not by the limit', async () => {
    const queue = engine.queue({ limits: { tenant: '100/s' } })
    await queue.submit({ jobs: [1, 2, 3].map((payload) => ({ type: 'T', tenant: 'a', payload })) })
    const [first] = await queue.claim(1)
    await first?.throttle({ retryAfterMs: 60_000 })
    await queue.claim(1)

    const { binds, gates, at } = await queue.explain({ tenant: 'a' })

    expect(binds).toMatchObject({ gate: 'parked', limit: 'tenant', reason: 'upstream' })
    const limit = gates.find(({ gate }) => gate === 'limit')
    expect(limit).toMatchObject({ open: false, reason: 'upstream' })
    expect(limit?.since).toBeGreaterThan(at - 10_000)
    expect(limit?.text).toContain('because its upstream pushed back')
  })

  it('waits for its turn while all hands are full', async () => {
    const queue = engine.queue({ quantum: 1 })
    await queue.submit({ jobs: ['a', 'a', 'b', 'b'].map((tenant) => ({ type: 'T', tenant })) })
    await queue.claim(1)

    const explanations = [await queue.explain({ tenant: 'a' }), await queue.explain({ tenant: 'b' })]

    expect(explanations.map(({ binds }) => binds?.gate)).toEqual(['turn', 'workers'])
    expect(explanations[0]?.binds).toMatchObject({ place: 2, inLine: 2, overdue: false })
    expect(explanations[1]?.binds).toMatchObject({ busy: 1, running: 1 })
  })

  it('waits for nothing while a worker is idle', async () => {
    const queue = engine.queue()
    queue.process('OTHER', () => {})
    await until(async () => (await queue.explain({ tenant: 'a' })).gates.at(-1)?.open === true)

    await queue.pause()
    await oneWaiting(queue)

    // The idle one is woken by the job, and idle again once it has found the queue paused.
    await until(async () => gatesOf(await queue.explain({ tenant: 'a' })).match(/-/g)?.length === 1)
    expect((await queue.explain({ tenant: 'a' })).binds?.gate).toBe('queue')
  })

  it('whose lanes are ordered waits for the jobs that run', async () => {
    const queue = engine.queue()
    const job = { type: 'T', tenant: 'a', lane: 'l', ordered: true }
    const { id } = await queue.submit(job)
    await queue.submit(job)
    await queue.claim(1)

    const { binds } = await queue.explain({ tenant: 'a' })

    expect(binds).toMatchObject({ gate: 'lane', busyWith: [id] })
  })

  it('is asked about on the level where it may run first', async () => {
    const queue = engine.queue()
    for (const level of ['high', 'low'] as const) await queue.submit({ type: 'T', tenant: 'a', level })
    await queue.pause({ level: 'high' })

    expect((await queue.explain({ tenant: 'a' })).level).toBe('low')
  })
})

describe('a job', () => {
  it('waits behind the others of its lane', async () => {
    const queue = engine.queue()
    await oneWaiting(queue)
    const second = await oneWaiting(queue)

    const explanation = await queue.explain({ job: second })

    expect(gatesOf(explanation)).toBe('queue+ level+ tenant+ job+ lane- parked+ turn+ workers-')
    expect(explanation?.binds).toMatchObject({ gate: 'lane', lane: 'default', ahead: 1, lanes: 1 })
    expect(explanation?.since).toBeLessThanOrEqual(explanation?.at ?? 0)
  })

  it('waits for the job before it in an ordered lane', async () => {
    const queue = engine.queue()
    const job = { type: 'T', tenant: 'a', lane: 'l', ordered: true }
    const first = await queue.submit(job)
    const second = await queue.submit(job)
    await queue.claim(1)

    expect((await queue.explain({ job: second.id }))?.binds).toMatchObject({ gate: 'lane', busyWith: [first.id] })
  })

  it('of a lane whose turn comes later is told how many go first', async () => {
    const queue = engine.queue()
    const ids: string[] = []
    for (const lane of ['x', 'y', 'z']) ids.push((await queue.submit({ type: 'T', tenant: 'a', lane })).id)

    const lanes = await Promise.all(ids.map(async (job) => (await queue.explain({ job }))?.gates[4]))

    expect(lanes).toMatchObject([{ lanesBefore: 0 }, { lanesBefore: 1 }, { lanesBefore: 2, lanes: 3 }])
  })

  it('is delayed, and says why and until when', async () => {
    const queue = engine.queue()
    const scheduled = await queue.submit({ type: 'T', tenant: 'a', delayMs: 60_000 })
    const failed = await oneWaiting(queue)
    const pushed = await oneWaiting(queue)
    const [first, second] = await queue.claim(2)
    await first?.fail(new Error('no'))
    await second?.throttle({ retryAfterMs: 60_000 })

    const gates = await Promise.all(
      [scheduled.id, failed, pushed].map(async (job) => (await queue.explain({ job }))?.binds),
    )

    expect(gates.map((gate) => gate?.gate === 'job' && gate.reason)).toEqual(['scheduled', 'retry', 'upstream'])
    for (const gate of gates) {
      expect(gate?.until).toBeGreaterThan(Date.now())
      expect(gate?.since).toBeGreaterThan(Date.now() - 10_000)
      expect(gate?.since).toBeLessThanOrEqual(Date.now())
    }
  })

  it('that runs says where, since when and until when it is leased', async () => {
    const queue = engine.queue()
    const id = await oneWaiting(queue)
    const [claimed] = await queue.claim(1)

    const explanation = await queue.explain({ job: id })

    expect(gatesOf(explanation)).toBe('job-')
    expect(explanation?.binds).toMatchObject({ state: 'running', fence: claimed?.fence })
    expect(explanation?.since).toBeLessThanOrEqual(explanation?.at ?? 0)
    expect(explanation?.binds).toHaveProperty('leaseUntil')
  })

  it('that has ended says how', async () => {
    const queue = engine.queue()
    const ids = [await oneWaiting(queue), await oneWaiting(queue), await oneWaiting(queue)]
    const [first, second] = await queue.claim(2)
    await first?.succeed()
    await second?.fail(new PermanentError('no'))
    await queue.cancel(ids[2] as string)

    const texts = await Promise.all(ids.map(async (job) => (await queue.explain({ job }))?.binds?.text))

    expect(texts).toEqual([
      'It has succeeded.',
      'It is a dead letter (discarded): it runs again only if somebody retries it.',
      'It was cancelled.',
    ])
  })

  it('of an action shows it, and that a cancelled one starts nothing', async () => {
    const queue = engine.queue()
    const action = await queue.submit({ tenant: 'a', action: 'x', type: 'T', jobs: [{ id: 'one' }] })
    const before = await queue.explain({ job: 'one', tenant: 'a', action: 'x' })
    await action.cancel()
    const after = await queue.explain({ job: 'one', tenant: 'a', action: 'x' })

    expect(before?.gates).toContainEqual(
      expect.objectContaining({ gate: 'action', state: 'DISPATCHED', isSealed: true }),
    )
    expect(after?.binds).toMatchObject({ gate: 'job', state: 'canceled' })
    expect(after?.gates[1]).toMatchObject({ gate: 'action', state: 'CANCELED', open: false })
  })

  it('that nobody knows has no explanation', async () => {
    expect(await engine.queue().explain({ job: 'never', tenant: 'a' })).toBeUndefined()
  })
})

it('says it in words, gate by gate', async () => {
  const queue = engine.queue()
  await oneWaiting(queue)
  await queue.pause()

  const lines = inWords(await queue.explain({ tenant: 'a' })).split('\n')

  expect(lines[0]).toMatch(/^The queue has been paused since .* ago\)\.$/)
  expect(lines[1]).toMatch(/^ {2}NO {3}queue {4}The queue has been paused/)
  expect(lines[2]).toBe('  yes  level    level normal is not paused')
  expect(lines).toHaveLength(9)
})

it('refuses a question without a subject', async () => {
  await expect(engine.queue().explain({} as never)).rejects.toThrow('or job must be given')
})
