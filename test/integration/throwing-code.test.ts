import { afterEach, expect, it, vi } from 'vitest'
import { Countdown } from '../support/countdown.ts'
import { until } from '../support/until.ts'
import { useEngine } from './engine.ts'

const engine = useEngine()

afterEach(() => vi.restoreAllMocks())

it('runs the other jobs of a claim where the log throws at one of them, and says it on standard error', async () => {
  const write = vi.spyOn(process.stderr, 'write').mockReturnValue(true)
  const queue = engine.queue()
  const worker = engine.sluice({
    log: () => {
      throw new Error('the disk is full')
    },
  })
  await queue.submit({ jobs: ['unknown', 'known', 'known'].map((type) => ({ type })) })
  const done = new Countdown(2)

  worker.queue('q').process('known', () => done.tick())
  await done.reached
  await until(async () => (await queue.counts()).delayed === 1)

  expect(await queue.counts()).toMatchObject({ succeeded: 2, running: 0 })
  expect(write.mock.calls.map(String).join('')).toMatch('worker.unknown-type')
})

it('runs the other jobs of a claim where what a handler returned throws, and retries that one', async () => {
  const queue = engine.queue()
  await queue.submit({ type: 'T', jobs: [{ payload: 'getter' }, { payload: 'call' }, { payload: 'whole' }] })
  const refuse = () => {
    throw new Error('already executed')
  }
  const lazy: Record<string, object> = {
    getter: Object.defineProperty({}, 'then', { get: refuse }),
    // biome-ignore lint/suspicious/noThenProperty: as the query of a database library has it.
    call: { then: refuse },
    // biome-ignore lint/suspicious/noThenProperty: as the query of a database library has it.
    whole: { then: (resolve: () => void) => resolve() },
  }

  queue.process<string>('T', ({ payload }) => lazy[payload])
  await until(async () => (await queue.counts()).delayed === 2)

  expect(await queue.counts()).toMatchObject({ succeeded: 1, retried: 2, running: 0 })
})
