import { expect, it } from 'vitest'
import type { LeasedJob } from './job.ts'
import type { LogEntry } from './log.ts'
import { type Hands, Processors } from './processors.ts'

const processor = { handler: () => {}, timeoutMs: 1_000, maxRetries: 3, upstream: undefined }
const hands: Hands = { concurrency: 10, isConcurrencyGiven: false, levels: ['high', 'normal', 'low'] }

function makeProcessors({ limitNames = [] }: { limitNames?: string[] } = {}) {
  const log: LogEntry[] = []
  const add = (entry: LogEntry) => log.push(entry)
  return { log, processors: new Processors({ queue: 'q', unknownTypeMs: 1_000, limitNames, log: add }) }
}

it('serves the levels that all of them give, and refuses others, also of the same type anew', () => {
  const { processors } = makeProcessors()
  processors.add('A', processor, hands)

  expect(() => processors.add('B', processor, { ...hands, levels: ['high'] })).toThrow(
    'process("B"): levels must be those that this process has given before (high normal low)',
  )
  expect(processors.of('B')).toBeUndefined()
  expect(() => processors.add('A', processor, { ...hands, levels: ['high'] })).toThrow(
    'process("A"): levels must be those that this process has given before',
  )
  processors.add('B', processor, hands)
  expect(processors.levels).toBe('high normal low')
})

it('says once of each of 50 types that nobody here knows it, and with the last that there may be more', () => {
  const { processors, log } = makeProcessors()
  const jobOf = (type: string) => ({ type, fence: '1', record: { history: { since: 0, reason: '' } } }) as LeasedJob

  for (let index = 0; index < 200; index++) processors.endOfUnknown(jobOf(`T${index % 100}`))

  expect(log.map(({ type }) => type)).toEqual(Array.from({ length: 50 }, (_, index) => `T${index}`))
  expect(log.filter(({ message }) => message.includes('There may be more'))).toEqual([log.at(-1)])
})

it('says once of an upstream that it is none of the given limits, where any are given', () => {
  const { processors, log } = makeProcessors({ limitNames: ['calls', 'daily'] })
  const silent = makeProcessors()

  for (const type of ['A', 'B']) processors.add(type, { ...processor, upstream: 'gold' }, hands)
  processors.add('C', { ...processor, upstream: 'daily' }, hands)
  silent.processors.add('A', { ...processor, upstream: 'gold' }, hands)

  expect(log).toMatchObject([{ level: 'warn', event: 'worker.unknown-upstream', upstream: 'gold' }])
  expect(log[0]?.message).toContain('none of those given to the queue "q" (calls, daily)')
  expect(silent.log).toEqual([])
})
