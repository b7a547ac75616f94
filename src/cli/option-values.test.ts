import { describe, expect, it } from 'vitest'
import { duration, moment } from './option-values.ts'

describe('a time', () => {
  it.each([
    ['250ms', 250],
    ['90', 90_000],
    ['24d', 2_073_600_000],
  ])('%s is %d ms', (text, ms) => {
    expect(duration(text)).toBe(ms)
  })

  it.each(['25d', '30d', '600h', '9999999999'])('%s is longer than a timer can wait', (text) => {
    expect(() => duration(text)).toThrow('It must be 24d or shorter.')
  })
})

describe('a moment', () => {
  it.each([
    ['2026-01-31', '2026-01-31T00:00:00.000Z'],
    ['2028-02-29', '2028-02-29T00:00:00.000Z'],
    ['2026-01-31T12:00Z', '2026-01-31T12:00:00.000Z'],
    ['2026-01-31T12:00:00.5+01:00', '2026-01-31T11:00:00.500Z'],
  ])('%s is %s', (text, iso) => {
    expect(new Date(moment(text)).toISOString()).toBe(iso)
  })

  it('is one of this machine without a zone', () => {
    expect(moment('2026-01-31T12:00')).toBe(new Date(2026, 0, 31, 12).getTime())
  })

  it.each([
    '5',
    '2026',
    '2026-1-1',
    '31.1.2026',
    'Jan 31 2026',
    '2026-02-31',
    '2026-02-30T10:00Z',
    '2026-01-31T25:00Z',
    'now',
    '',
  ])('is not %j', (text) => {
    expect(() => moment(text)).toThrow('It must be a date such as 2026-01-31 or 2026-01-31T12:00:00Z.')
  })
})
