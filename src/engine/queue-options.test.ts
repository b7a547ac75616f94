import { expect, it } from 'vitest'
import { InvalidOptionsError } from '../errors.ts'
import { checkQueueOptions, declaredSettings, type QueueOptions } from './queue-options.ts'

it('fills in every default', () => {
  expect(checkQueueOptions('q', undefined)).toEqual({
    limits: { rules: { queue: [], high: [], normal: [], low: [], tenant: [] }, shared: [] },
    share: 'fair',
    maxCloseMs: 3_600_000,
    quantum: 4,
    alpha: 0,
    maxProgressMs: 60_000,
    maxWaitMs: 60_000,
    leaseMs: 15_000,
    maxStalls: 5,
    maxRetries: 3,
    maxThrottles: 100,
    jobTimeoutMs: 30_000,
    unknownTypeMs: 3_600_000,
    shutdownGraceMs: 30_000,
    maxPayloadBytes: 262_144,
    maxPending: 0,
    maxPendingPerTenant: 0,
    whenFull: 'wait',
    keepIdsMs: 172_800_000,
    keepDeadLettersMs: 604_800_000,
    keepActionsMs: 604_800_000,
    keepResultsMs: 86_400_000,
    maxResultBytes: 65_536,
    keepEventsMs: 86_400_000,
    maxEvents: 10_000,
    audit: { enabled: true, everyMs: 600_000, idleStepMs: 60_000, stepMs: 500 },
    congestion: {
      enabled: true,
      baseBackoffMs: 1_000,
      maxBackoffMs: 120_000,
      snapshotMs: 10_000,
      retentionMs: 3_600_000,
    },
  })
})

it('reports all problems at once, and the nearest name for one it does not know', () => {
  const options = {
    leaseMS: 1,
    quantum: 0,
    alpha: Number.NaN,
    maxRetries: -1,
    whenFull: 'drop',
    limits: { queue: 'fast', levels: { urgent: '5/s' } },
  } as unknown as QueueOptions

  const error = capture(() => checkQueueOptions('q', options))

  expect(error).toBeInstanceOf(InvalidOptionsError)
  expect(error.problems.map(({ path }) => path)).toEqual([
    'limits.queue',
    'limits.levels.urgent',
    'quantum',
    'alpha',
    'maxRetries',
    'whenFull',
    'leaseMS',
  ])
  expect(error.message).toContain('did you mean "leaseMs"?')
})

it.each([
  { quantum: 1.5 },
  { leaseMs: 99 },
  { maxStalls: 21 },
  { maxPayloadBytes: 1 },
  { maxPending: -1 },
  { keepIdsMs: 1_999 },
  { shutdownGraceMs: Number.POSITIVE_INFINITY },
  { maxWaitMs: '60' },
  { limits: '5/s' },
])('refuses %o', (options) => {
  const [name] = Object.keys(options)

  const error = capture(() => checkQueueOptions('q', options as QueueOptions))

  expect(error.problems).toMatchObject([{ path: name }])
})

it('declares to the store what all processes share, in µs', () => {
  const declared = declaredSettings(checkQueueOptions('q', { maxWaitMs: 5, quantum: 2, limits: { tenant: '5/s' } }))

  expect(declared.values).toMatchObject({ max_wait: 5_000, quantum: 2, keep_ids: 172_800_000_000 })
  expect(declared.limits.tenant).toMatchObject([{ name: 'tenant', count: 5 }])
})

function capture(action: () => unknown): InvalidOptionsError {
  try {
    action()
  } catch (error) {
    return error as InvalidOptionsError
  }
  throw new Error('nothing was thrown')
}
