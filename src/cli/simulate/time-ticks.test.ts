import { expect, it } from 'vitest'
import { timeTicks } from './time-ticks.ts'

it.each([
  [40, ['0', '10 ms', '20 ms', '30 ms', '40 ms']],
  [52_000, ['0', '10 s', '20 s', '30 s', '40 s', '50 s']],
  [600_000, ['0', '2 min', '4 min', '6 min', '8 min', '10 min']],
  [347_000, ['0', '1 min', '2 min', '3 min', '4 min', '5 min']],
  [86_400_000, ['0', '4 h', '8 h', '12 h', '16 h', '20 h', '24 h']],
  [14 * 86_400_000, ['0', '2 d', '4 d', '6 d', '8 d', '10 d', '12 d', '14 d']],
])('the ticks of %d ms are round', (endMs, labels) => {
  expect(timeTicks(endMs).map(({ label }) => label)).toEqual(labels)
})

it('there are at least two and at most eight ticks, whatever the time', () => {
  for (let endMs = 2; endMs < 366 * 86_400_000; endMs *= 1.07) {
    const { length } = timeTicks(endMs)
    expect(length, `${endMs} ms`).toBeGreaterThanOrEqual(2)
    expect(length, `${endMs} ms`).toBeLessThanOrEqual(8)
  }
})
