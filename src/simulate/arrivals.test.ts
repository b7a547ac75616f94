import { describe, expect, it } from 'vitest'
import { arrivalRule, type CheckedArrival, StreamClock } from './arrivals.ts'
import { Random } from './random.ts'

const HOUR = 3_600e6

function instantsOf(arrival: object, durationUs: number): number[] {
  const stream = arrivalRule(arrival, 'arrivals', (path, problem) => {
    throw new Error(`${path} ${problem}`)
  }) as CheckedArrival & { kind: 'stream' }
  const clock = new StreamClock(stream, new Random('a seed'), 0, durationUs)
  const instants: number[] = []
  for (let at = clock.next(); at !== undefined; at = clock.next()) instants.push(at)
  return instants
}

describe('a stream of arrivals', () => {
  it('comes like a clock when it is even, from somewhere in the first stretch on', () => {
    const instants = instantsOf({ rate: '10/s', spread: 'even' }, 2e6)

    expect(instants).toHaveLength(20)
    expect(instants[0]).toBeLessThan(100_000)
    for (const [at, instant] of instants.slice(1).entries()) {
      expect(Math.abs(instant - (instants[at] as number) - 100_000)).toBeLessThanOrEqual(1)
    }
  })

  it('comes by chance otherwise: as many as the rate says, as far apart as those who know nothing of each other', () => {
    const instants = instantsOf({ rate: '100/s' }, 100e6)

    const gaps = instants.slice(1).map((instant, at) => instant - (instants[at] as number))
    const mean = gaps.reduce((sum, gap) => sum + gap, 0) / gaps.length
    const deviation = Math.sqrt(gaps.reduce((sum, gap) => sum + (gap - mean) ** 2, 0) / gaps.length)
    expect(instants.length).toBeGreaterThan(9_700)
    expect(instants.length).toBeLessThan(10_300)
    expect(deviation / mean).toBeGreaterThan(0.95)
    expect(deviation / mean).toBeLessThan(1.05)
  })

  it('comes by the hour of the day', () => {
    const perHour = Array.from({ length: 24 }, (_, hour) => (hour === 3 ? 600 : hour === 4 ? 60 : 0))

    const instants = instantsOf({ perHour, spread: 'even' }, 24 * HOUR)

    const hours = instants.map((instant) => Math.floor(instant / HOUR))
    expect(hours.filter((hour) => hour === 3)).toHaveLength(600)
    expect(hours.filter((hour) => hour === 4)).toHaveLength(60)
    expect(hours).toHaveLength(660)
  })

  it('comes only between its bounds', () => {
    const instants = instantsOf({ rate: '1/s', from: '10s', until: '20s', spread: 'even' }, 60e6)

    expect(instants).toHaveLength(10)
    expect(instants[0]).toBeGreaterThanOrEqual(10e6)
    expect(instants.at(-1)).toBeLessThan(20e6)
  })
})
