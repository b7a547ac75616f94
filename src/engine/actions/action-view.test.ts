import { expect, it } from 'vitest'
import { encodeError } from '../../store/record.ts'
import type { FoundAction } from '../../store/scripts/read-actions.ts'
import { toProgress, toSummary } from './action-view.ts'

const found: FoundAction = {
  tenant: 'a',
  name: 'x',
  state: 'FAILED',
  isSealed: true,
  received: 0,
  counts: { total: 0, waiting: 0, running: 0, delayed: 0, succeeded: 0, failed: 0, canceled: 0 },
  type: 'T',
  level: 'normal',
  lane: '@x',
  keepResults: true,
  failFast: false,
  maxFailureRatio: undefined,
  createdAt: 1,
  startedAt: 0,
  endedAt: 2,
  lastEndAt: 0,
  first: 0,
  next: 0,
  attempts: 0,
  throttles: 0,
  perSecond: 0,
  pace: undefined,
  aggregate: '',
  error: encodeError(new Error('no sum today')),
  statistics: new Map(),
}

it('says why there is no aggregate, without the stack', () => {
  expect(toSummary('q', found)).toMatchObject({ aggregate: undefined, aggregateError: 'no sum today' })
})

it('says how jobs failed, the most frequent first and ten at most', () => {
  const statistics = new Map(Array.from({ length: 12 }, (_, n) => [`eerror ${n}`, `${n + 1}\nnormal:@x:${n}:a`]))

  const { errors } = toSummary('q', { ...found, error: '', statistics: statistics.set('o', '20\nnormal:@x:99:a') })

  expect(errors).toHaveLength(10)
  expect(errors[0]).toEqual({ message: 'others', count: 20, exampleId: 'normal:@x:99:a' })
  expect(errors[1]).toEqual({ message: 'error 11', count: 12, exampleId: 'normal:@x:11:a' })
})

it('says how long it takes at the speed of its tenant, whose other actions take turns with it', () => {
  const counts = { ...found.counts, total: 130, waiting: 100, running: 10, succeeded: 20 }
  const pace = { waiting: 150, lanes: 3, speed: 10, backoffMs: 16_000, baseBackoffMs: 1_000 }
  const running = { ...found, state: 'RUNNING', startedAt: 1, counts, perSecond: 3, pace } as const

  expect(toProgress(running)).toMatchObject({ perSecond: 3, etaMs: 16_000, congestion: 'HIGH' })
  expect(toProgress({ ...running, pace: { ...pace, lanes: 1 } })).toMatchObject({ etaMs: 11_000 })
  expect(toProgress({ ...running, pace: { ...pace, speed: 0 } })).toMatchObject({ etaMs: undefined })
  expect(toProgress({ ...running, startedAt: 0 })).toMatchObject({ etaMs: undefined })
})
