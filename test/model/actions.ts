import fc from 'fast-check'
import type { Level } from '../../src/store/names.ts'
import type { Finish } from '../../src/store/scripts/finish-and-claim.ts'
import type { DutyOutcome } from '../../src/store/scripts/settle-duty.ts'
import type { DeclaredSettings, LimitChange, LimitRule } from '../../src/store/settings.ts'
import type { Action, FinishStep, LessonStep, LineStep } from './steps.ts'
import { changingClocks } from './zones.ts'

/** What a random run is made of. Few tenants, lanes and ids, so that things meet. */

const MS = 1_000
const SECOND = 1_000_000
const MINUTE = 60 * SECOND
const HOUR = 60 * MINUTE
const DAY = 24 * HOUR

/** Now and then one of many, so that there are more than a script looks at at once. */
const tenant = fc.oneof(
  { weight: 5, arbitrary: fc.constantFrom('a', 'b', 'c', 'd') },
  { weight: 1, arbitrary: fc.nat(15).map((n) => `t${n}`) },
)
const level = fc.constantFrom<Level>('high', 'normal', 'low')
/** Of bulk actions: enough that some are open while others have ended. */
const actionName = fc.constantFrom('u', 'v', 'w', 'x', 'y')
const lane = fc.oneof(
  { weight: 3, arbitrary: fc.constantFrom('default', 'default', 'm', 'n', '!o', '!p') },
  { weight: 3, arbitrary: fc.nat(40).map((at) => `@${at}`) },
)
const client = fc.nat(2)
const which = fc.nat(40)
const rarely = (arity = 12): fc.Arbitrary<boolean> => fc.nat(arity).map((n) => n === arity)

const delayUs = fc.oneof(
  fc.constant(0),
  fc.nat(5 * MS),
  fc.integer({ min: MS, max: 3 * SECOND }),
  fc.constant(2 * MINUTE),
)

/** Most runs have none that costs more: that is another way through the claim, for the whole queue. */
const cost = fc.oneof({ weight: 120, arbitrary: fc.constant(1) }, { weight: 1, arbitrary: fc.constantFrom(2, 3, 5, 9) })

const line: fc.Arbitrary<LineStep> = fc.record({
  tenant,
  level,
  lane,
  base: fc.option(fc.constantFrom(0, -50, 30, 1_000), { nil: undefined, freq: 8 }),
  kind: fc.constantFrom('fresh', 'fresh', 'named', 'later'),
  jobs: fc.array(fc.record({ id: fc.nat(30), delayUs, cost }), { minLength: 1, maxLength: 6 }),
})

/** As many tenants as come back together when their limits are alike. */
const crowd: fc.Arbitrary<LineStep[]> = level.map((at) =>
  Array.from({ length: 12 }, (_, n) => ({
    tenant: `t${n}`,
    level: at,
    lane: 'default',
    base: undefined,
    kind: 'fresh' as const,
    jobs: Array.from({ length: 3 }, () => ({ id: 0, delayUs: 0, cost: 1 })),
  })),
)

const delayMs = fc.constantFrom(0, 1, 250, 1_000, 30_000)
const error = fc.constantFrom('{"name":"E","message":"x"}', '{"name":"E","message":"a,b"}')
const finish: fc.Arbitrary<Finish> = fc.oneof(
  { weight: 5, arbitrary: fc.constant<Finish>({ outcome: 'succeeded' }) },
  { weight: 3, arbitrary: fc.record({ outcome: fc.constant('retry' as const), delayMs, error }) },
  {
    weight: 1,
    arbitrary: fc.record({
      outcome: fc.constant('throttled' as const),
      delayMs: fc.option(delayMs, { nil: undefined }),
    }),
  },
  {
    weight: 1,
    arbitrary: fc.record({
      outcome: fc.constant('dead' as const),
      reason: fc.constantFrom('failed' as const, 'discarded' as const, 'throttled' as const),
      error,
    }),
  },
  { weight: 2, arbitrary: fc.constant<Finish>({ outcome: 'returned' }) },
  { weight: 1, arbitrary: fc.constant<Finish>({ outcome: 'released' }) },
  { weight: 1, arbitrary: fc.record({ outcome: fc.constant('unknown' as const), delayMs }) },
)
const finished: fc.Arbitrary<FinishStep> = fc.record({ which, isZombie: rarely(), finish })

/** Of one answer: what a worker merges of several is its own affair. */
const lesson: fc.Arbitrary<LessonStep> = fc.record({
  upstream: fc.constantFrom('', '', 'queue', 'tenant', 'own', 'none'),
  pushback: fc.option(
    fc.record({ retryAfterMs: fc.constantFrom<(number | undefined)[]>(undefined, 100, 1_500, 20_000) }),
  ),
  reading: fc.option(
    fc.record({
      remaining: fc.constantFrom(0, 3, 8, 50),
      resetInMs: fc.constantFrom(0, 400, 3_000, 4_000, 60_000),
      limit: fc.constantFrom<(number | undefined)[]>(undefined, 10, 60),
    }),
  ),
})

/** A name has one jitter, here as in real life: what is learnt of it is kept by name. */
const bucket = (name: string): fc.Arbitrary<LimitRule> =>
  fc.constantFrom(
    { name, kind: 'bucket' as const, count: 10, window: SECOND, burst: 1, jitter: 50 * MS },
    { name, kind: 'bucket' as const, count: 20, window: SECOND, burst: 4, jitter: 50 * MS },
    { name, kind: 'bucket' as const, count: 6, window: 10 * SECOND, burst: 3, jitter: 50 * MS },
    { name, kind: 'bucket' as const, count: 100, window: HOUR, burst: 8, jitter: 50 * MS },
    { name, kind: 'bucket' as const, count: 1, window: SECOND, burst: 1, jitter: 50 * MS },
  )
const concurrency = (name: string): fc.Arbitrary<LimitRule> =>
  fc.integer({ min: 1, max: 5 }).map((max) => ({ name, kind: 'concurrency' as const, max }))
const window = (name: string): fc.Arbitrary<LimitRule> =>
  fc.constantFrom(
    { name, kind: 'window' as const, count: 3, window: 100 * MS, offset: 0, jitter: 50 * MS },
    { name, kind: 'window' as const, count: 10, window: 2 * SECOND, offset: 300 * MS, jitter: 50 * MS },
    { name, kind: 'window' as const, count: 20, window: HOUR, offset: 0, jitter: 50 * MS, zones: changingClocks },
    {
      name,
      kind: 'window' as const,
      count: 12,
      window: 6 * HOUR,
      offset: HOUR,
      jitter: 50 * MS,
      zones: changingClocks,
    },
    { name, kind: 'window' as const, count: 30, window: DAY, offset: 0, jitter: 50 * MS, zones: changingClocks },
  )
const quota = (name: string): fc.Arbitrary<LimitRule> =>
  fc.constantFrom(
    { name, kind: 'quota' as const, threshold: 0 },
    { name, kind: 'quota' as const, threshold: 5 },
    { name, kind: 'quota' as const, threshold: 2, members: ['x', 'y'] },
    { name, kind: 'quota' as const, threshold: 2, members: ['y', 'z', 'x'] },
  )
const rule = (name: string): fc.Arbitrary<LimitRule> =>
  fc.oneof(
    { weight: 4, arbitrary: bucket(name) },
    { weight: 3, arbitrary: concurrency(name) },
    { weight: 2, arbitrary: window(name) },
    { weight: 2, arbitrary: quota(name) },
  )
const rules = (...names: string[]): fc.Arbitrary<LimitRule[]> =>
  fc
    .tuple(...names.map((name) => fc.option(rule(name), { freq: 1 })))
    .map((list) => list.filter((each) => each !== null))

const limitChange = (name: string): fc.Arbitrary<LimitChange & { name: string }> =>
  fc.oneof(rule(name), fc.constantFrom({ kind: 'none' as const, name }, { kind: 'declared' as const, name }))

export const declared: fc.Arbitrary<DeclaredSettings> = fc.record({
  values: fc.record({
    strict: fc.constantFrom(0, 0, 1),
    max_close: fc.constantFrom(HOUR, 5 * SECOND),
    quantum: fc.constantFrom(1, 2, 4, 4),
    alpha: fc.constantFrom(0, 0, 10_000, -5_000),
    max_progress: fc.constantFrom(60 * SECOND, 100 * MS),
    max_wait: fc.constantFrom(MINUTE, 2 * SECOND, 0),
    max_stalls: fc.constantFrom(5, 1, 2),
    max_pending: fc.constantFrom(0, 0, 20),
    max_pending_tenant: fc.constantFrom(0, 0, 8),
    keep_ids: fc.constantFrom(48 * HOUR, 2 * HOUR),
    keep_dead: fc.constantFrom(168 * HOUR, HOUR),
    keep_actions: fc.constant(168 * HOUR),
    keep_results: fc.constant(24 * HOUR),
    keep_events: fc.constant(24 * HOUR),
    max_events: fc.constant(10_000),
    congestion: fc.constantFrom(true, true, false),
    base_backoff: fc.constantFrom(SECOND, 10 * MS),
    max_backoff: fc.constantFrom(2 * MINUTE, 3 * SECOND),
    snapshot: fc.constantFrom(10 * SECOND, SECOND),
    keep_history: fc.constant(HOUR),
  }),
  limits: fc.record({
    queue: fc.oneof({ weight: 2, arbitrary: fc.constant([]) }, { weight: 1, arbitrary: rules('queue', 'upstream') }),
    high: fc.oneof({ weight: 4, arbitrary: fc.constant([]) }, { weight: 1, arbitrary: rules('high') }),
    normal: fc.oneof({ weight: 4, arbitrary: fc.constant([]) }, { weight: 1, arbitrary: rules('normal') }),
    low: fc.oneof({ weight: 4, arbitrary: fc.constant([]) }, { weight: 1, arbitrary: rules('low') }),
    tenant: fc.oneof({ weight: 1, arbitrary: fc.constant([]) }, { weight: 2, arbitrary: rules('tenant', 'extra') }),
  }),
})

const settings: fc.Arbitrary<Action> = fc
  .oneof(
    fc.record({ quantum: fc.constantFrom(1, 2, 4, 6) }).map((values) => ({ values })),
    fc.record({ alpha: fc.constantFrom(0, 1_000, -1_000) }).map((values) => ({ values })),
    fc.record({ strict: fc.constantFrom(0, 1) }).map((values) => ({ values })),
    fc.record({ max_wait: fc.constantFrom(0, SECOND, MINUTE) }).map((values) => ({ values })),
    fc.record({ congestion: fc.boolean(), snapshot: fc.constantFrom(SECOND, MINUTE) }).map((values) => ({ values })),
    limitChange('queue').map((change) => ({ limits: { queue: { queue: change } } })),
    limitChange('burst').map((change) => ({ limits: { queue: { burst: change } } })),
    fc.tuple(level, limitChange('own')).map(([at, change]) => ({ limits: { [at]: { own: change } } })),
    limitChange('tenant').map((change) => ({ limits: { tenant: { tenant: change } } })),
  )
  .map((patch) => ({ do: 'settings', patch }))

const tenantPatch: fc.Arbitrary<Action> = fc
  .tuple(
    tenant,
    fc.oneof(
      fc.record({ weight: fc.constantFrom(1, 2, 3, 0.5, 0.1) }),
      fc.record({ base: fc.constantFrom(0, -1_000, 500) }),
      fc.record({ level: fc.constantFrom('', 'high', 'normal', 'low') }),
      fc.record({ paused: fc.boolean() }),
      limitChange('tenant').map((change) => ({ limits: { tenant: change } })),
      limitChange('mine').map((change) => ({ limits: { mine: change } })),
    ),
  )
  .map(([name, patch]) => ({ do: 'tenant', tenant: name, patch }))

const us = fc.oneof(
  { weight: 3, arbitrary: fc.nat(5) },
  { weight: 6, arbitrary: fc.integer({ min: 1, max: 200 * MS }) },
  { weight: 4, arbitrary: fc.integer({ min: 200 * MS, max: 4 * SECOND }) },
  { weight: 2, arbitrary: fc.integer({ min: 4 * SECOND, max: 70 * SECOND }) },
  { weight: 1, arbitrary: fc.constantFrom(10 * MINUTE, HOUR, 26 * HOUR) },
  // After a failover the new server's clock may be behind.
  { weight: 1, arbitrary: fc.constantFrom(-1, -20 * MS, -3 * SECOND) },
)

const claim: fc.Arbitrary<Action> = fc.record({
  do: fc.constant('claim' as const),
  client,
  wanted: fc.constantFrom(0, 1, 1, 2, 3, 5, 8, 20),
  levels: fc.constantFrom('high normal low', 'high normal low', 'high normal low', 'high', 'normal low'),
  leaseMs: fc.constantFrom(15_000, 15_000, 1_000, 100),
  idleForMs: fc.constantFrom(0, 12_000, 12_000),
  hasSuspect: rarely(5),
  takesBackForUs: fc.constantFrom(undefined, undefined, undefined, 0, -1),
  saysUntold: fc.boolean(),
  finished: fc.array(finished, { maxLength: 5 }),
  lesson: fc.option<LessonStep>(lesson, { freq: 2 }),
})

const openAction: fc.Arbitrary<Action> = fc.record({
  do: fc.constant('open action' as const),
  client,
  tenant: fc.constantFrom('a', 'b', 'c', 'd'),
  name: actionName,
  isOrdered: rarely(3),
  rules: fc.record({
    // Actions of type A have an aggregate of their own.
    type: fc.constantFrom('T', 'T', 'A'),
    level,
    keepResults: fc.boolean(),
    failFast: rarely(4),
    maxFailureRatio: fc.constantFrom(undefined, undefined, 0, 0.5),
    sealTimeoutMs: fc.constantFrom(0, 0, 1_000),
  }),
  webhook: fc.constantFrom('', '', '{}'),
  begunBy: fc.constantFrom('', '', 'k'),
})

const taker = fc.record({
  kinds: fc.subarray(['aggregate', 'webhook', 'seal', 'free'] as const, { minLength: 2 }),
  types: fc.subarray(['A']),
  leaseMs: fc.constantFrom(100, 15_000),
  unknownTypeMs: fc.constantFrom(1_000, 3_600_000),
})
const became: fc.Arbitrary<DutyOutcome> = fc.oneof(
  fc.constant<DutyOutcome>({ outcome: 'done', aggregate: '{}' }),
  fc.constant<DutyOutcome>({ outcome: 'done', error: 'no' }),
  fc.constantFrom<DutyOutcome>({ outcome: 'again', afterMs: 100 }, { outcome: 'renewed', afterMs: 500 }),
)

/** By how often they come. */
const weighted: readonly (readonly [number, fc.Arbitrary<Action>])[] = [
  [
    16,
    fc.record({ do: fc.constant('submit' as const), client, lines: fc.array(line, { minLength: 1, maxLength: 4 }) }),
  ],
  [1, fc.record({ do: fc.constant('submit' as const), client, lines: crowd })],
  [36, claim],
  [18, us.map((step) => ({ do: 'wait', us: step }))],
  [
    4,
    fc.record({
      do: fc.constant('renew' as const),
      client,
      which: fc.array(which, { maxLength: 4 }),
      leaseMs: fc.constantFrom(15_000, 500),
    }),
  ],
  [4, fc.record({ do: fc.constant('admit' as const), client, which, isZombie: rarely(5) })],
  [5, fc.record({ do: fc.constant('cancel' as const), client, which })],
  [3, settings],
  [
    1,
    fc.record({
      do: fc.constant('declare' as const),
      declared,
      gives: fc.constantFrom(
        { share: true, limits: true },
        { share: true, limits: true },
        { share: false, limits: true },
        { share: true, limits: false },
        { share: false, limits: false },
      ),
    }),
  ],
  [5, tenantPatch],
  [
    2,
    fc.record({
      do: fc.constant('pause' as const),
      level: fc.option(level, { nil: undefined }),
      isPaused: fc.boolean(),
    }),
  ],
  [3, fc.record({ do: fc.constant('letter' as const), client, which, retries: fc.boolean() })],
  [6, openAction],
  [
    4,
    fc.record({
      do: fc.constant('end action' as const),
      client,
      which,
      verb: fc.constantFrom('seal' as const, 'seal' as const, 'cancel' as const),
    }),
  ],
  [2, fc.record({ do: fc.constant('take back action' as const), client, which })],
  [
    1,
    fc.record({
      do: fc.constant('watch action' as const),
      client,
      which,
      forMs: fc.constantFrom(0, 1_000, 60_000),
    }),
  ],
  [
    2,
    fc.record({
      do: fc.constant('read actions' as const),
      which: fc.array(which, { minLength: 1, maxLength: 3 }),
      withStatistics: fc.boolean(),
    }),
  ],
  [1, which.map((at) => ({ do: 'forget action', which: at }))],
  [3, fc.record({ do: fc.constant('take duty' as const), taker })],
  [3, fc.record({ do: fc.constant('settle duty' as const), client, which, became })],
  [4, which.map((at) => ({ do: 'read job', which: at }))],
  [2, tenant.map((name) => ({ do: 'read tenant', tenant: name }))],
  [2, fc.oneof(tenant, fc.constant('')).map((name) => ({ do: 'read limits', tenant: name }))],
  [1, fc.constant<Action>({ do: 'read letters' })],
  [3, fc.record({ do: fc.constant('repeat' as const), client, back: fc.nat(5) })],
  [1, client.map((at) => ({ do: 'crash', client: at }))],
  [1, fc.constantFrom<Action>({ do: 'restart' }, { do: 'come back' }, { do: 'flush scripts' })],
]

export const action: fc.Arbitrary<Action> = fc.oneof(...weighted.map(([weight, arbitrary]) => ({ weight, arbitrary })))
