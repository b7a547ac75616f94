import { describe, expect, it } from 'vitest'
import { problemOfCron, problemOfTimeZone, timetableOf } from './timetable.ts'

/** The next instants after one, in UTC: `03-29T01:00`. */
function next(timing: { cron: string; timeZone: string }, after: string, count: number): string[] {
  const timetable = timetableOf(timing)
  const found: string[] = []
  for (let at = Date.parse(after); found.length < count; ) {
    at = timetable.next(at) ?? Number.NaN
    found.push(new Date(at).toISOString().slice(5, 16))
  }
  return found
}

describe('a cron pattern that names hours', () => {
  it('is met by the clocks of its zone', () => {
    expect(next({ cron: '0 9 * * *', timeZone: 'Asia/Kolkata' }, '2026-03-28T12:00:00Z', 2)).toEqual([
      '03-29T03:30',
      '03-30T03:30',
    ])
  })

  it.each([
    ['Europe/Berlin', '30 2 * * *', '2026-03-27T12:00:00Z', ['03-28T01:30', '03-29T01:00', '03-30T00:30']],
    ['America/New_York', '30 2 * * *', '2026-03-07T00:00:00Z', ['03-07T07:30', '03-08T07:00', '03-09T06:30']],
    // Clocks are put on by half an hour there.
    ['Australia/Lord_Howe', '15 2 * * *', '2026-10-02T12:00:00Z', ['10-02T15:45', '10-03T15:30', '10-04T15:15']],
  ])('is met when clocks are put on if that leaves its time out (%s)', (timeZone, cron, after, expected) => {
    expect(next({ cron, timeZone }, after, 3)).toEqual(expected)
  })

  it.each([
    ['Europe/Berlin', '30 2 * * *', '2026-10-23T12:00:00Z', ['10-24T00:30', '10-25T00:30', '10-26T01:30']],
    ['America/New_York', '30 1 * * *', '2026-10-31T00:00:00Z', ['10-31T05:30', '11-01T05:30', '11-02T06:30']],
    ['Australia/Lord_Howe', '45 1 * * *', '2026-04-03T12:00:00Z', ['04-03T14:45', '04-04T14:45', '04-05T15:15']],
  ])('is met once if its time comes twice (%s)', (timeZone, cron, after, expected) => {
    expect(next({ cron, timeZone }, after, 3)).toEqual(expected)
  })

  it('is met once for several times that are left out, and for each that comes twice', () => {
    const cron = '0,20,40 2,3 * * *'

    expect(next({ cron, timeZone: 'Europe/Berlin' }, '2026-03-28T12:00:00Z', 4)).toEqual([
      ...['03-29T01:00', '03-29T01:20', '03-29T01:40', '03-30T00:00'],
    ])
    expect(next({ cron, timeZone: 'Europe/Berlin' }, '2026-10-24T12:00:00Z', 5)).toEqual([
      ...['10-25T00:00', '10-25T00:20', '10-25T00:40', '10-25T02:00', '10-25T02:20'],
    ])
  })

  it('is not met again in the hour that comes a second time, also by whoever begins to look then', () => {
    expect(next({ cron: '*/20 2 * * *', timeZone: 'Europe/Berlin' }, '2026-10-25T01:10:00Z', 1)).toEqual([
      '10-26T01:00',
    ])
  })
})

describe('a cron pattern for every hour', () => {
  it.each([
    ['2026-03-28T23:30:00Z', ['03-29T00:05', '03-29T01:05', '03-29T02:05']],
    ['2026-10-24T23:30:00Z', ['10-25T00:05', '10-25T01:05', '10-25T02:05']],
  ])('goes on through changes of the clocks (from %s)', (after, expected) => {
    expect(next({ cron: '5 * * * *', timeZone: 'Europe/Berlin' }, after, 3)).toEqual(expected)
  })

  it.each([
    ...['0 * * * *', '0 */1 * * *', '0 0-23 * * *', '0 0-11,12-23 * * *', '0 */2,1-23/2 * * *', '@hourly'],
    ...['0 0 */1 * * *', '0 */1 * * SUN'],
  ])('goes on through them whichever way it says so (%s)', (cron) => {
    expect(next({ cron, timeZone: 'Europe/Berlin' }, '2026-10-24T23:30:00Z', 3)).toEqual([
      ...['10-25T00:00', '10-25T01:00', '10-25T02:00'],
    ])
    expect(next({ cron, timeZone: 'Europe/Berlin' }, '2026-03-28T23:30:00Z', 3)).toEqual([
      ...['03-29T00:00', '03-29T01:00', '03-29T02:00'],
    ])
  })

  it('is none if it leaves out a single one', () => {
    expect(next({ cron: '0 0-22 * * *', timeZone: 'Europe/Berlin' }, '2026-10-24T23:30:00Z', 2)).toEqual([
      ...['10-25T00:00', '10-25T02:00'],
    ])
  })

  it('leaves out what clocks leave out', () => {
    expect(next({ cron: '15 * * * *', timeZone: 'Australia/Lord_Howe' }, '2026-10-03T14:00:00Z', 2)).toEqual([
      '10-03T14:45',
      '10-03T16:15',
    ])
  })
})

it('takes seconds, nicknames, and days by their names', () => {
  const timeZone = 'UTC'

  expect(next({ cron: '@daily', timeZone }, '2026-05-05T05:05:05Z', 1)).toEqual(['05-06T00:00'])
  expect(next({ cron: '30 59 23 * * FRI', timeZone }, '2026-05-05T05:05:05Z', 1)).toEqual(['05-08T23:59'])
})

it('knows the days that some years do not have', () => {
  const leap = timetableOf({ cron: '0 0 29 2 *', timeZone: 'UTC' })

  expect(leap.next(Date.parse('2026-01-01'))).toBe(Date.parse('2028-02-29'))
})

describe('elapsed time', () => {
  it('is counted from its anchor, before it and after', () => {
    const { next: after } = timetableOf({ everyMs: 15_000, anchor: 100_000 })

    expect([0, 9_999, 10_000, 99_999, 100_000, 100_001].map(after)).toEqual([
      10_000, 10_000, 25_000, 100_000, 115_000, 115_000,
    ])
  })

  it.each([Number.MIN_SAFE_INTEGER, -8.64e15, 8.64e15, Number.MAX_SAFE_INTEGER])(
    'goes on by what it says, however far its anchor is (%d)',
    (anchor) => {
      const timetable = timetableOf({ everyMs: 101, anchor })
      const now = Date.parse('2026-01-01T00:00:00Z')

      const found = [now]
      while (found.length < 1_000) found.push(timetable.next(found.at(-1) as number) ?? Number.NaN)

      const steps = found.slice(2).map((instant, index) => instant - (found[index + 1] as number))
      expect(new Set(steps)).toEqual(new Set([101]))
      expect((BigInt(found[1] as number) - BigInt(anchor)) % 101n).toBe(0n)
    },
  )
})

it.each([
  ['0 0', 'must have five fields'],
  ['0 0 * * * * *', 'must have five fields'],
  ['2026-01-01T00:00:00', 'must have five fields'],
  ['? 0 * * *', 'must have five fields'],
  ['61 * * * *', 'cannot be understood: Invalid value for minute: 61'],
  ['a b c d e', 'cannot be understood'],
  ['@reboot', 'cannot be understood'],
  ['0 0 31 2 *', 'names a time that never comes'],
  [5, 'must be text'],
])('says what is wrong with the pattern %s', (cron, problem) => {
  expect(problemOfCron(cron)).toContain(problem)
})

it('says what is wrong with a time zone', () => {
  expect(problemOfTimeZone('Europe/Berlin')).toBeUndefined()
  expect(problemOfTimeZone('Europe/Nowhere')).toContain('none that is called "Europe/Nowhere"')
  expect(problemOfTimeZone(2)).toContain('must be the name of a time zone')
})
