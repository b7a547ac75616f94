import { expect, it } from 'vitest'
import { IdlePace } from './idle-pace.ts'

const MINUTE = 60_000

it('lets a part or two send something every minute, and no more than two a minute however many there are', () => {
  const pace = new IdlePace()

  const perMinute = Array.from({ length: 40 }, (_, before) => {
    pace.join()
    return ((before + 1) * MINUTE) / pace.stretch(MINUTE)
  })

  expect(perMinute.slice(0, 3)).toEqual([1, 2, 2])
  expect(Math.max(...perMinute)).toBeCloseTo(2)
})

it('goes back to its pace when parts leave, each of them once', () => {
  const pace = new IdlePace()
  const leave = Array.from({ length: 8 }, () => pace.join())

  const before = pace.stretch(MINUTE)
  for (const each of leave.slice(0, 4)) {
    each()
    each()
  }

  expect([before, pace.stretch(MINUTE)]).toEqual([4 * MINUTE, 2 * MINUTE])
})
