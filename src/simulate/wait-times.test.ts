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
