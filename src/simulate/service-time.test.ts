import { expect, it } from 'vitest'
import { Random } from './random.ts'
import { serviceRule } from './service-time.ts'

function drawn(service: unknown, count: number): number[] {
  const { draw } = serviceRule(service, 'service', (path, problem) => {
    throw new Error(`${path} ${problem}`)
  })
  const random = new Random('a seed')
  return Array.from({ length: count }, () => draw(random)).sort((a, b) => a - b)
}

it('a time is always the same', () => {
  expect(drawn('80ms', 2)).toEqual([80_000, 80_000])
})

it('from and to are never left, and everything between them comes alike', () => {
  const times = drawn({ from: '20ms', to: '180ms' }, 10_000)

  expect(times[0]).toBeGreaterThanOrEqual(20_000)
  expect(times.at(-1)).toBeLessThanOrEqual(180_000)
  expect(Math.abs((times[2_500] as number) - 60_000)).toBeLessThan(3_000)
})

it('p50 and p99 are the median and the 99th percentile', () => {
  const times = drawn({ p50: '100ms', p99: '1s' }, 100_000)

  expect(Math.abs((times[50_000] as number) / 100_000 - 1)).toBeLessThan(0.02)
  expect(Math.abs((times[99_000] as number) / 1_000_000 - 1)).toBeLessThan(0.06)
})
