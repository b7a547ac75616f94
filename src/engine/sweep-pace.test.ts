import { expect, it } from 'vitest'
import type { Clock } from '../clock.ts'
import { SweepPace } from './sweep-pace.ts'

const START = Date.UTC(2026, 0, 1)

function clockAt(date: number) {
  const clock = { at: date, now: () => clock.at, date: () => clock.at, setTimer: () => () => {} }
  return clock satisfies Clock
}

/** Letters taken at each of the moments, in ms from the start. */
function takenAt(pace: SweepPace, clock: { at: number }, moments: readonly number[]): number[] {
  return moments.map((ms) => {
    clock.at = START + ms
    const earned = pace.earned()
    pace.take(earned)
    return earned
  })
}

it('earns the first letter at once, and the others at the rate', () => {
  const clock = clockAt(START)

  const taken = takenAt(new SweepPace(clock, 10 / 1_000), clock, [0, 50, 99, 100, 250, 300, 1_000])

  expect(taken).toEqual([1, 0, 0, 1, 1, 1, 7])
})

it('keeps to the rate where another goes on with it', () => {
  const clock = clockAt(START)
  const first = new SweepPace(clock, 1 / 3_600_000)
  takenAt(first, clock, [0])

  const taken = takenAt(new SweepPace(clock, 1 / 3_600_000, first.nextAt), clock, [5_000, 3_599_999, 3_600_000])

  expect(taken).toEqual([0, 0, 1])
})

it('lets nobody save up for more than a second', () => {
  const clock = clockAt(START)

  expect(takenAt(new SweepPace(clock, 10 / 1_000), clock, [60_000, 60_100])).toEqual([11, 1])
})

it.each([0, 9e15])('is neither hurried nor stopped by a cursor that somebody made up: %i', (nextAt) => {
  const clock = clockAt(START)
  const pace = new SweepPace(clock, 10 / 1_000, nextAt)

  const [first, second] = takenAt(pace, clock, [0, 100])

  expect(first).toBeLessThanOrEqual(11)
  expect(second).toBe(1)
})

it('waits no longer than for one letter when the clock is put back', () => {
  const clock = clockAt(START)
  const pace = new SweepPace(clock, 10 / 1_000)
  takenAt(pace, clock, [0])

  clock.at = START - 3_600_000

  expect([pace.earned(), pace.waitMs()]).toEqual([0, 100])
})
