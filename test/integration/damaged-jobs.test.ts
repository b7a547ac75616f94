import { expect, it } from 'vitest'
import { keyPrefix } from '../../src/store/keys.ts'
import { until } from '../support/until.ts'
import { withResolvers } from '../support/with-resolvers.ts'
import { drain } from './drain.ts'
import { useEngine } from './engine.ts'
import { payloads } from './payloads.ts'

const engine = useEngine()

// Each of another kind: history, error, cost, options, lines that are missing, a level that is none.
const damaged = [
  'nonsense\n1\nT\n\n\nnull',
  '1,0,0,0,retry,{\n1\nT\n\n\nnull',
  '*x;\n1\nT\n\n\nnull',
  '*5',
  '\n1\nT\n\n{\nnull',
  '\n1\nT\nnull',
  '^nowhere\n\n1\nT\n\n\nnull',
  'nonsense',
  '',
]

function key(name: string): string {
  return keyPrefix(engine.prefix, 'q') + name
}

/** In the place of the first jobs of the default lane. */
async function damageFirst(records: readonly string[]): Promise<void> {
  const redis = engine.server.client()
  for (const [at, record] of records.entries()) await redis.lset(key('lane:normal:default:default'), at, record)
}

it('makes dead letters of jobs whose records cannot be read, and runs those claimed with them', async () => {
  const queue = engine.queue({ limits: { queue: '100000/s' } })
  await queue.submit({ type: 'T', jobs: payloads(damaged.length + 2) })
  await damageFirst(damaged)

  queue.process('T', () => {}, { concurrency: 50 })
  await until(async () => (await queue.counts()).succeeded === 2)
  await until(async () => (await queue.counts()).failed === damaged.length)

  const { letters } = await queue.deadLetters.list()
  expect(letters.map(({ reason }) => reason)).toEqual(damaged.map(() => 'unreadable'))
  expect(engine.log.filter(({ event }) => event === 'job.unreadable')).toHaveLength(damaged.length)
  expect(engine.log.filter(({ event }) => event === 'worker.exchange-failed')).toEqual([])
  for (const { key } of letters) {
    expect(await queue.job(key)).toMatchObject({ state: 'failed', reason: 'unreadable', error: expect.anything() })
  }
})

it('buries them for a caller with a loop of its own, which gets the others', async () => {
  const queue = engine.queue()
  await queue.submit({ type: 'T', jobs: payloads(damaged.length + 2) })
  await damageFirst(damaged)

  const seen = await drain(queue, ({ payload }) => String(payload))

  expect(seen).toEqual([String(damaged.length + 1), String(damaged.length + 2)])
  expect(await queue.counts()).toMatchObject({ succeeded: 2, failed: damaged.length, running: 0 })
})

it('brings back a delayed job whose record is damaged, and buries it', async () => {
  const queue = engine.queue()
  const { id } = await queue.submit({ type: 'T', delayMs: 60_000 })
  await engine.server.client().hset(key('aside'), id, 'nonsense')

  await queue.runDelayed({})
  queue.process('T', () => {})
  await until(async () => (await queue.counts()).failed === 1)

  expect(await queue.deadLetters.list()).toMatchObject({ letters: [{ key: id, reason: 'unreadable' }] })
  expect(await queue.deadLetters.retry(id, { payload: 1 })).toBe(true)
  await until(async () => (await queue.counts()).failed === 2)
})

// A letter that is none at all, and one whose error is no JSON, no object, or has a message that is no text.
it.each([
  ['', () => 'nonsense'],
  [' error', (letter: string) => letter.replace('{"name"', '{name"')],
  [' error of another kind', (letter: string) => letter.replace(/,\{"name".*/, ',5')],
  [' message', (letter: string) => letter.replace(/"message":"no"/, '"message":{}')],
])(
  'passes over a dead letter with a damaged%s where it does not fit, and takes it where all are meant',
  async (_, damage) => {
    const queue = engine.queue()
    await queue.submit({ type: 'T', jobs: payloads(3).map((job) => ({ ...job, maxRetries: 0 })) })
    for (const job of await queue.claim(3)) await job.fail(new Error('no'))
    const id = (await queue.deadLetters.list()).letters[1]?.key as string
    const redis = engine.server.client()
    await redis.hset(key('dead:jobs'), id, damage((await redis.hget(key('dead:jobs'), id)) as string))

    expect(await queue.deadLetters.count({ error: 'no' })).toBe(2)
    expect(await queue.deadLetters.count({ type: 'T' })).toBeGreaterThanOrEqual(2)
    expect(await queue.deadLetters.count({ all: true })).toBe(3)
    expect(await queue.job(id)).toMatchObject({ state: 'failed', error: expect.anything() })
    expect((await queue.explain({ job: id }))?.text).toContain('It is a dead letter')
    expect(await queue.deadLetters.discardAll({ all: true }).finished).toMatchObject({ taken: 3, left: 0 })
  },
)

it('retries a dead letter that cannot be read: it is one again, which says so', async () => {
  const queue = engine.queue()
  await queue.submit({ type: 'T', maxRetries: 0 })
  for (const job of await queue.claim(1)) await job.fail(new Error('no'))
  const id = (await queue.deadLetters.list()).letters[0]?.key as string
  await engine.server.client().hset(key('dead:jobs'), id, 'nonsense')

  expect(await queue.job(id)).toMatchObject({ state: 'failed', reason: 'unreadable', payload: 'nonsense' })
  expect(await queue.deadLetters.retry(id)).toBe(true)
  queue.process('T', () => {})
  await until(async () => (await queue.counts()).failed === 2)

  expect((await queue.deadLetters.list()).letters).toMatchObject([{ key: id, reason: 'unreadable' }])
})

it('finishes the others where the store cannot be told of one, which runs again after its lease', async () => {
  const queue = engine.queue({ leaseMs: 1_000 })
  await queue.submit({ type: 'T', tenant: 'broken' })
  await queue.submit({ type: 'T', tenant: 'whole' })
  const redis = engine.server.client()
  const mayEnd = withResolvers<void>()
  const started: string[] = []

  queue.process('T', async ({ tenant }) => {
    started.push(tenant)
    await mayEnd.promise
    if (tenant === 'broken' && started.length < 3) throw new Error('a retry, which moves its tenant')
  })
  await until(() => started.length === 2)
  await redis.rename(key('tenant:broken'), key('tenant:kept'))
  await redis.set(key('tenant:broken'), 'no hash')
  mayEnd.resolve()
  await until(() => engine.log.some(({ event }) => event === 'worker.untellable-job'))
  await redis.rename(key('tenant:kept'), key('tenant:broken'))
  await until(async () => (await queue.counts()).succeeded === 2)

  expect(started).toEqual(['broken', 'whole', 'broken'])
  expect(await queue.counts()).toMatchObject({ stalled: 1, retried: 0 })
})
