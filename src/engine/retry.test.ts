import { expect, it } from 'vitest'
import { retryDelayMs, throttleDelayMs } from './retry.ts'

it('doubles the delay with every failure, a quarter more or less by chance', () => {
  const delays = (random: number) => [0, 1, 2, 3].map((failures) => retryDelayMs(failures, () => random))

  expect(delays(0.5)).toEqual([1_000, 2_000, 4_000, 8_000])
  expect(delays(0)).toEqual([750, 1_500, 3_000, 6_000])
  expect(delays(1)).toEqual([1_250, 2_500, 5_000, 10_000])
})

it('never waits for more than a minute', () => {
  expect(retryDelayMs(6, () => 1)).toBe(60_000)
  expect(retryDelayMs(1_000_000, () => 0.5)).toBe(60_000)
})

it.each([
  [undefined, undefined],
  [Number.NaN, undefined],
  [Number.POSITIVE_INFINITY, undefined],
  [-1, undefined],
  [0, 0],
  [250, 250],
  [1e12, 86_400_000],
])('waits as long as the upstream asked for, if that makes sense: %o', (asked, delay) => {
  expect(throttleDelayMs(asked)).toBe(delay)
})
