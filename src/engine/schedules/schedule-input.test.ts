import { expect, it } from 'vitest'
import type { InvalidOptionsError } from '../../errors.ts'
import { jobFieldNames } from '../submission.ts'
import { checkSchedule, type ScheduleInput } from './schedule-input.ts'

const job = { type: 'REPORT' }

function problemsOf(input: unknown, name = 'nightly'): readonly string[] {
  try {
    checkSchedule(name, input as ScheduleInput, 1_000)
  } catch (error) {
    return (error as InvalidOptionsError).problems.map(({ path, problem }) => `${path} ${problem}`)
  }
  return []
}

it('fills in what was not given', () => {
  expect(checkSchedule('nightly', { cron: '0 3 * * *', job }, 1_000)).toEqual({
    cron: '0 3 * * *',
    timeZone: 'UTC',
    missed: 'one',
    job,
  })
  expect(checkSchedule('often', { every: '15m', job }, 1_000)).toEqual({
    everyMs: 900_000,
    anchor: 0,
    missed: 'one',
    job,
  })
})

it('takes an anchor in any form', () => {
  const given = [new Date(5_000), 5_000, '1970-01-01T00:00:05Z', '1970-01-01T01:00:05.000+01:00', '1970-01-02']
  const anchors = given.map((anchor) => checkSchedule('often', { every: 1_000, anchor, job }, 1_000))

  expect(anchors.map((definition) => 'anchor' in definition && definition.anchor)).toEqual([
    ...[5_000, 5_000, 5_000, 5_000, 86_400_000],
  ])
})

it.each([
  ...['5', '', '2026', 'January', '2026-02-31', '2026-01-01T25:00Z', '2026-01-01T06:00', '2026-01-01T06:00:00'],
  ...[8_640_000_000_000_001, Number.MIN_SAFE_INTEGER, 0.5, new Date('noon')],
])('takes no guess for an anchor, nor what no date can hold: %s', (anchor) => {
  expect(problemsOf({ every: 1_000, anchor, job })).toEqual([expect.stringContaining('anchor must be a date')])
})

it('takes all that a job can say but for its id and when it may start', () => {
  const whole = { type: 'A', payload: 1, tenant: 't', level: 'low', lane: 'l', ordered: true, cost: 5 } as const
  const job = { ...whole, maxRetries: 1, timeoutMs: 1 }

  expect(checkSchedule('a', { every: 1_000, job }, 1_000).job).toEqual(job)
  expect(Object.keys(job).concat('id', 'delayMs', 'runAt').sort()).toEqual([...jobFieldNames].sort())
})

it('writes the same whatever the order of the fields', () => {
  const one = checkSchedule('a', { every: 1_000, job: { type: 'A', tenant: 't', level: 'low' } }, 1_000)
  const other = checkSchedule('a', { job: { level: 'low', tenant: 't', type: 'A' }, every: 1_000 }, 1_000)

  expect(JSON.stringify(one)).toBe(JSON.stringify(other))
})

it.each([
  [{ cron: '0 25 * * *', job }, 'cron cannot be understood: Invalid value for hour: 25'],
  [{ cron: '0 3 * * *', timeZone: 'Mars/Olympus', job }, 'timeZone must be the name of a time zone'],
  [{ every: 'soon', job }, 'every must be whole ms or text such as "15m"'],
  [{ every: 99, job }, 'every must be whole ms'],
  [{ every: 1_000, anchor: 'noon', job }, 'anchor must be a date'],
  [{ every: 1_000, missed: 'some', job }, 'missed must be "one", "all" or "skip"'],
  [{ job }, 'cron or every must be given'],
  [{ cron: '0 3 * * *', every: 1_000, job }, 'cron and every exclude each other'],
  [{ every: 1_000, timeZone: 'UTC', job }, 'timeZone belongs to cron'],
  [{ cron: '0 3 * * *', anchor: 0, job }, 'anchor belongs to every'],
  [{ every: 1_000 }, 'job cannot be submitted: its type is missing'],
  [{ every: 1_000, job: { type: 'A', level: 'top' } }, 'job cannot be submitted: its level'],
  [{ every: 1_000, job: { type: 'A', payload: 'x'.repeat(2_000) } }, 'job cannot be submitted: its payload has'],
  [{ every: 1_000, job: { type: 'A', delayMs: 1 } }, 'job.delayMs is not an option'],
  [{ evry: 1_000, every: 1_000, job }, 'evry is not an option; did you mean "every"?'],
])('names the field that cannot be used: %o', (input, problem) => {
  expect(problemsOf(input)).toEqual([expect.stringContaining(problem)])
})

it('names a name that cannot be used', () => {
  const input = { every: 1_000, job }

  expect(problemsOf(input, '')).toEqual(['name must have 1 to 256 characters, not 0'])
  expect(problemsOf(input, 'x'.repeat(201))).toEqual(['name must have 1 to 200 characters, not 201'])
  expect(problemsOf(input, 'high:lane:1:tenant')).toEqual([
    expect.stringMatching(/^name would give jobs an id that looks like a generated one/),
  ])
})
