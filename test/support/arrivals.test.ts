import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { busiestWindow, mostAtOnce, usedShare } from './arrivals.ts'

const sortedTimes = fc.array(fc.integer({ min: 0, max: 500 }), { maxLength: 60 }).map((t) => t.sort((a, b) => a - b))

describe('busiestWindow', () => {
  it('counts the end of the window out', () => {
    expect(busiestWindow([0, 1, 999, 1000], 1000)).toEqual({ count: 3, first: 0, last: 999 })
  })

  it('agrees with counting from every arrival', () => {
    fc.assert(
      fc.property(sortedTimes, fc.integer({ min: 1, max: 200 }), (times, windowMs) => {
        const slow = times.map((start) => times.filter((time) => time >= start && time < start + windowMs).length)

        expect(busiestWindow(times, windowMs).count).toBe(Math.max(0, ...slow))
      }),
    )
  })
})

describe('mostAtOnce', () => {
  it('agrees with counting at every beginning', () => {
    const spans = fc.array(
      fc
        .tuple(fc.integer({ min: 0, max: 100 }), fc.integer({ min: 1, max: 30 }))
        .map(([from, length]) => ({ from, to: from + length })),
      { maxLength: 40 },
    )
    fc.assert(
      fc.property(spans, (all) => {
        const slow = all.map(({ from }) => all.filter((span) => span.from <= from && from < span.to).length)

        expect(mostAtOnce(all).count).toBe(Math.max(0, ...slow))
      }),
    )
  })
})

describe('usedShare', () => {
  it('is 1 when arrivals are spaced exactly as the limit allows', () => {
    expect(usedShare([0, 100, 200, 300], { permits: 10, windowMs: 1000 })).toBeCloseTo(1)
  })

  it('is 0 while fewer than two have arrived', () => {
    expect(usedShare([5], { permits: 10, windowMs: 1000 })).toBe(0)
  })
})
