import { expect, it } from 'vitest'
import { WaitTimes } from './wait-times.ts'

it('quantiles are right within 2 %, mean and maximum exactly', () => {
  const waits = new WaitTimes()

  for (let ms = 1; ms <= 10_000; ms++) waits.add(ms)

  expect(waits.meanMs).toBe(5_000.5)
  expect(waits.maxMs).toBe(10_000)
  for (const share of [0.01, 0.5, 0.95, 0.99]) {
    expect(Math.abs(waits.quantileMs(share) / (share * 10_000) - 1)).toBeLessThan(0.02)
  }
  expect(waits.quantileMs(1)).toBe(10_000)
})

it('who does not wait waits for nothing', () => {
  const waits = new WaitTimes()

  waits.add(0)
  waits.add(0.05)

  expect(waits.quantileMs(0.5)).toBe(0)
})

it('those of several tenants add up', () => {
  const [some, others] = [new WaitTimes(), new WaitTimes()]
  some.add(10)
  others.add(1_000)
  others.add(2_000)

  some.addAll(others)

  expect([some.count, some.maxMs, some.meanMs]).toEqual([3, 2_000, 3_010 / 3])
  expect(Math.abs(some.quantileMs(0.5) / 1_000 - 1)).toBeLessThan(0.02)
})

it('without jobs all is nothing', () => {
  expect([new WaitTimes().meanMs, new WaitTimes().quantileMs(0.99)]).toEqual([0, 0])
})

it('those who have not started count with what they have waited, and what depends on them is not final', () => {
  const waits = new WaitTimes()
  for (let ms = 1; ms <= 90; ms++) waits.add(ms)

  waits.addUnstarted(5_000, 10)

  expect([waits.count, waits.unstarted, waits.maxMs]).toEqual([100, 10, 5_000])
  expect(waits.meanMs).toBe((45.5 * 90 + 50_000) / 100)
  expect(Math.abs(waits.quantileMs(0.95) / 5_000 - 1)).toBeLessThan(0.02)
  expect([0.5, 0.9, 0.91, 0.99].map((share) => waits.isFinal(share))).toEqual([true, true, false, false])
})

it('a quantile is not final where those who have not started waited for less than it so far', () => {
  const waits = new WaitTimes()
  for (let ms = 101; ms <= 160; ms++) waits.add(ms)

  waits.addUnstarted(1, 40)

  expect(waits.isFinal(0.5)).toBe(false)
})
