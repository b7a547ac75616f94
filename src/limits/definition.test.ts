import { describe, expect, it } from 'vitest'
import { effectivePerSecond, isDefinition, parseLimit } from './definition.ts'

describe('a rate', () => {
  it.each([
    ['500/s', 500, 1_000],
    ['30/min', 30, 60_000],
    ['5000/h', 5_000, 3_600_000],
    ['1000/10s', 1_000, 10_000],
    ['7 / 2 d', 7, 172_800_000],
    [' 1/250ms ', 1, 250],
  ])('%s is a bucket', (text, count, windowMs) => {
    expect(parseLimit('x', text)).toMatchObject({ name: 'x', kind: 'bucket', count, window: windowMs * 1000 })
  })

  it.each(['', '500', '500/', '/s', '-1/s', '1.5/s', '5/fortnight', '5/S', '0/s', '5/0s', '1e3/s', '500/s/s'])(
    '%o is refused',
    (text) => expect(() => parseLimit('x', text)).toThrow(),
  )

  it('names what a rate looks like when it is refused', () => {
    expect(() => parseLimit('x', 'fast')).toThrow("must be a rate such as '500/s', '30/min' or '1000/10s', not 'fast'")
  })
})

describe('a bucket', () => {
  it.each([
    [1, 1],
    [99, 1],
    [100, 1],
    [101, 2],
    [500, 5],
    [5_000, 50],
  ])('of %i a second has a burst of %i unless told otherwise, and a jitter of 50 ms', (limit, burst) => {
    expect(parseLimit('x', { kind: 'bucket', limit, windowMs: 1_000 })).toEqual({
      name: 'x',
      kind: 'bucket',
      count: limit,
      window: 1_000_000,
      burst,
      jitter: 50_000,
    })
  })

  it('takes a burst of half its limit, and no more', () => {
    expect(parseLimit('x', { kind: 'bucket', limit: 10, windowMs: 1_000, burst: 5 })).toMatchObject({ burst: 5 })
    expect(() => parseLimit('x', { kind: 'bucket', limit: 10, windowMs: 1_000, burst: 6 })).toThrow(
      'has a burst of 6, more than half its limit of 10',
    )
  })

  it.each([
    { limit: 0 },
    { limit: 1.5 },
    { limit: '10' },
    { limit: Number.NaN },
    { limit: 1e10 },
    { windowMs: 0 },
    { windowMs: 400 * 86_400_000 },
    { burst: 0 },
    { jitterMs: -1 },
    { jitterMs: 1_001 },
  ])('is refused with %o, by the name of the field', (wrong) => {
    const [field] = Object.keys(wrong)

    expect(() => parseLimit('x', { kind: 'bucket', limit: 10, windowMs: 1_000, ...wrong })).toThrow(`needs a ${field}`)
  })

  it('grants a little less than its limit, so that the upstream never sees more', () => {
    const rule = parseLimit('x', '500/s')
    if (rule.kind !== 'bucket') throw new Error('a rate is a bucket')

    expect(effectivePerSecond(rule, rule.jitter)).toBeCloseTo(472.4, 1)
  })
})

describe('a window', () => {
  const day = { kind: 'window', limit: 20_000_000, windowMs: 86_400_000 }

  it('is of the calendar of UTC unless told otherwise', () => {
    expect(parseLimit('x', day)).toEqual({
      name: 'x',
      kind: 'window',
      count: 20_000_000,
      window: 86_400_000_000,
      offset: 0,
      jitter: 50_000,
    })
  })

  it('knows the changes of a time zone', () => {
    const rule = parseLimit('x', { ...day, timeZone: 'Europe/Berlin' })

    expect(rule).toMatchObject({ zones: expect.arrayContaining([3_600, 7_200]) })
  })

  it('leaves half of a short one for grants', () => {
    expect(parseLimit('x', { kind: 'window', limit: 5, windowMs: 100 })).toMatchObject({ jitter: 50_000 })
    expect(() => parseLimit('x', { kind: 'window', limit: 5, windowMs: 100, jitterMs: 51 })).toThrow('needs a jitterMs')
  })

  it.each([{ limit: 0 }, { windowMs: 99 }, { offsetMs: -1 }, { offsetMs: 86_400_000 }, { timeZone: 'Berlin' }])(
    'is refused with %o, by the name of the field',
    (wrong) => {
      const [field] = Object.keys(wrong)

      expect(() => parseLimit('x', { ...day, ...wrong })).toThrow(`needs a ${field}`)
    },
  )
})

describe('a quota', () => {
  it('leaves a hundred over unless told otherwise', () => {
    expect(parseLimit('x', { kind: 'quota' })).toEqual({ name: 'x', kind: 'quota', threshold: 100 })
  })

  it('can be a pool', () => {
    expect(parseLimit('x', { kind: 'quota', threshold: 5, pool: ['a', 'b'] })).toEqual({
      name: 'x',
      kind: 'quota',
      threshold: 5,
      members: ['a', 'b'],
    })
  })

  it.each([
    [{ threshold: -1 }, 'needs a threshold'],
    [{ pool: [] }, 'needs a pool'],
    [{ pool: 'a' }, 'needs a pool'],
    [{ pool: ['a', 'a'] }, 'given twice'],
    [{ pool: ['a&b'] }, 'letters, digits'],
    [{ pool: [5] }, 'letters, digits'],
  ])('is refused with %o', (wrong, problem) => {
    expect(() => parseLimit('x', { kind: 'quota', ...wrong })).toThrow(problem)
  })
})

describe('a concurrency limit', () => {
  it('has a maximum', () => {
    expect(parseLimit('x', { kind: 'concurrency', max: 5 })).toEqual({ name: 'x', kind: 'concurrency', max: 5 })
  })

  it.each([0, -1, 1.5, '5', undefined])('is refused with a maximum of %o', (max) => {
    expect(() => parseLimit('x', { kind: 'concurrency', max })).toThrow('needs a max')
  })
})

it.each([undefined, null, 5, true, [], {}, { kind: 'sliding' }, { limit: 5 }])('%o is no limit', (definition) => {
  expect(() => parseLimit('x', definition)).toThrow(/^must/)
})

it('names a field that is not known', () => {
  expect(() => parseLimit('x', { kind: 'concurrency', max: 1, maximum: 2 })).toThrow('unknown field "maximum"')
})

it('is told apart from several limits by name', () => {
  expect(['5/s', { kind: 'concurrency', max: 1 }].map(isDefinition)).toEqual([true, true])
  expect([{ a: '5/s' }, undefined, 5].map(isDefinition)).toEqual([false, false, false])
})
