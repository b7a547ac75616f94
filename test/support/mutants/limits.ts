import type { HistoryEvent } from '../history.ts'
import { LIMIT } from '../history-generator.ts'
import { must, type Of } from './editable-history.ts'
import { LATE, type Mutant } from './mutant.ts'

/** Too many arrivals at the upstream: each breaks a promise of checks/limits.ts. */
export const LIMIT_MUTANTS: readonly Mutant[] = [
  // C7: rate
  {
    name: 'one arrival too many falls into a full window',
    check: 'C7',
    faults: false,
    break: (h) => {
      const effects = h.of('effect')
      const full = effects.findIndex(
        ({ at }, i) => (effects[i + LIMIT.permits - 1]?.at ?? Number.POSITIVE_INFINITY) - at < LIMIT.windowMs - 1,
      )
      const next = must(effects[full + LIMIT.permits], 'next arrival')
      return h.change((event) => event === next, { at: (effects[full] as HistoryEvent).at + LIMIT.windowMs - 0.5 })
    },
  },
  {
    name: 'everything arrives at once',
    check: 'C7',
    faults: false,
    break: (h) => h.change((event) => event.kind === 'effect', { at: LATE, until: LATE }),
  },
  {
    name: "one tenant's own limit is broken while the queue's holds",
    check: 'C7',
    faults: false,
    options: { limits: [LIMIT, { permits: 1, windowMs: 150, tenant: 'b' }] },
    break: (h) => h.change((event) => event.kind === 'effect', { tenant: 'b' }),
  },
  {
    name: 'something arrives while the limit is closed',
    check: 'C7',
    faults: false,
    options: { closed: [{ from: LATE, to: LATE + 1_000 }] },
    break: (h) => h.change((event) => event === h.of('effect').at(-1), { at: LATE + 999, until: LATE + 999 }),
  },
  // C8: concurrency
  {
    name: 'one call too many is in flight',
    check: 'C8',
    faults: false,
    break: (h) => {
      const effects = h.of('effect')
      return h.change((event) => effects.slice(0, 4).includes(event as Of<'effect'>), { until: 5_000 })
    },
  },
  {
    name: "one tenant has more calls in flight than its limit while the queue's holds",
    check: 'C8',
    faults: false,
    options: { concurrency: [{ max: 1, tenant: 'b' }] },
    break: (h) => {
      const effects = h.of('effect').slice(0, 2)
      return h.change((event) => effects.includes(event as Of<'effect'>), { tenant: 'b', until: 5_000 })
    },
  },
]
