import { expect, it } from 'vitest'
import { Histogram } from './histogram.ts'

it('counts a value under every bound that it does not exceed, and all values last', () => {
  const histogram = new Histogram([1, 2.5, 10])

  for (const value of [0, 1, 1.01, 2.5, 9, 10, 10.5, 1_000]) histogram.observe(value)

  expect(histogram.cumulated()).toEqual([2, 4, 6, 8])
  expect(histogram.sum).toBeCloseTo(1_034.01)
})

it('puts each value where a search from the first bound on would', () => {
  const bounds = [0, 1, 2, 5, 10, 20, 50]
  const histogram = new Histogram(bounds)
  const values = Array.from({ length: 120 }, (_, at) => at / 2)

  for (const value of values) histogram.observe(value)

  const atMost = (bound: number) => values.filter((value) => value <= bound).length
  expect(histogram.cumulated()).toEqual([...bounds.map(atMost), values.length])
})
