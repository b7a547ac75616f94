import fc from 'fast-check'
import { expect, it } from 'vitest'
import type { BucketRule } from '../../src/store/settings.ts'
import { OpenBucket } from './reference/bucket.ts'

/** Of the jitter: the age at which a grant is stale. The rest is for the way to the upstream. */
const FRESH_SHARE = 0.6

/** A call may arrive at any instant between these, in µs. */
interface Arrival {
  readonly from: number
  readonly until: number
}

const rules = fc
  .record({
    count: fc.integer({ min: 2, max: 600 }),
    jitter: fc.integer({ min: 0, max: 300_000 }),
    part: fc.double({ min: 0, max: 0.5, noNaN: true }),
  })
  .map(({ count, jitter, part }): BucketRule => {
    const burst = Math.max(1, Math.floor(count * part))
    return { name: 'upstream', kind: 'bucket', count, window: 1_000_000, burst, jitter }
  })

/** Callers who ask again and again: after so many µs, for so many permits, in so many steps of one script. */
const asking = fc.array(
  fc.record({
    after: fc.oneof(
      fc.integer({ min: 0, max: 3_000 }),
      fc.integer({ min: 0, max: 60_000 }),
      fc.integer({ min: 0, max: 2_000_000 }),
    ),
    wanted: fc.oneof(fc.integer({ min: 1, max: 3 }), fc.integer({ min: 1, max: 600 })),
    steps: fc.integer({ min: 1, max: 3 }),
  }),
  { minLength: 20, maxLength: 400 },
)

/** Everything the bucket grants, each as late as it can be used and as late as the way allows. */
function arrivals(rule: BucketRule, asked: readonly { after: number; wanted: number; steps: number }[]): Arrival[] {
  const arrived: Arrival[] = []
  let now = 1_000_000_000
  let stored: string | undefined
  for (const { after, wanted, steps } of asked) {
    now += after
    const restarts = { count: 0, lastAt: 0 }
    const bucket = new OpenBucket(rule, stored, { jitter: rule.jitter, restarts, hasCosts: false, now, share: 1 })
    let granted = 0
    for (let step = 0; step < steps; step++) {
      const permits = Math.min(wanted, bucket.available())
      if (permits === 0) break
      expect(bucket.instant(permits)).toBeLessThanOrEqual(now)
      bucket.charge(permits, now)
      granted += permits
    }
    if (granted === 0) continue
    stored = bucket.text()
    const kept = Math.floor(rule.jitter * FRESH_SHARE) - bucket.late()
    const until = now + kept + rule.jitter * (1 - FRESH_SHARE)
    for (let i = 0; i < granted; i++) arrived.push({ from: now, until })
  }
  return arrived
}

/** The most that can be made to arrive within some window, its end not included. */
function most(arrived: readonly Arrival[], windowUs: number): number {
  const starts = [...new Set(arrived.map(({ until }) => until))]
  return Math.max(
    0,
    ...starts.map((start) => arrived.filter(({ from, until }) => until >= start && from < start + windowUs).length),
  )
}

it('grants no more than arrive within any window, however late each is used and whatever its way takes', () => {
  fc.assert(
    fc.property(rules, asking, (rule, asked) => {
      expect(most(arrivals(rule, asked), rule.window)).toBeLessThanOrEqual(rule.count)
    }),
    { numRuns: 300 },
  )
})

it.each([
  ['500/s', { count: 500, burst: 5 }, 11, 472],
  ['100/s', { count: 100, burst: 1 }, 2, 95],
  ['30/s', { count: 30, burst: 1 }, 2, 28.5],
])('loses no permit of %s to one who asks every so often', (_, { count, burst }, everyMs, perSecond) => {
  const rule: BucketRule = { name: 'upstream', kind: 'bucket', count, window: 1_000_000, burst, jitter: 50_000 }
  const asked = Array.from({ length: 10_000 / everyMs }, () => ({ after: everyMs * 1_000, wanted: 100, steps: 2 }))

  expect(arrivals(rule, asked).length / 10).toBeGreaterThan(perSecond - 1)
})
