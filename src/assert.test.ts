import { describe, expect, expectTypeOf, it } from 'vitest'
import * as rules from './assert.ts'
import { checkOptions, group, integer, optional } from './assert.ts'
import { InvalidOptionsError } from './errors.ts'

function problemsOf(run: () => unknown): string[] {
  try {
    run()
  } catch (error) {
    if (error instanceof InvalidOptionsError) return error.problems.map(({ path, problem }) => `${path} ${problem}`)
    throw error
  }
  return []
}

/** What a rule says about one value; undefined stands for no option at all. */
function problemOf(rule: rules.Rule<unknown>, value: unknown): string | undefined {
  return problemsOf(() => checkOptions('a test', value === undefined ? {} : { it: value }, { it: rule }))[0]
}

describe('checkOptions', () => {
  it('fills in defaults, keeps what is given and freezes the result', () => {
    const settings = checkOptions(
      'a test',
      { leaseMs: 2_000 },
      {
        leaseMs: integer({ min: 1_000, default: 15_000 }),
        quantum: integer({ min: 1, default: 4 }),
        note: optional(rules.text()),
      },
    )

    expect(settings).toEqual({ leaseMs: 2_000, quantum: 4, note: undefined })
    expect(Object.isFrozen(settings)).toBe(true)
    expectTypeOf(settings).toEqualTypeOf<{
      readonly leaseMs: number
      readonly quantum: number
      readonly note: string | undefined
    }>()
  })

  it('takes no options at all for an empty object', () => {
    expect(checkOptions('a test', undefined, { a: integer({ default: 1 }) })).toEqual({ a: 1 })
  })

  it('reports all problems at once, those of groups by their path', () => {
    const problems = problemsOf(() =>
      checkOptions(
        'a test',
        { a: 'x', retry: { max: -1 }, other: 1 },
        {
          a: integer(),
          b: integer(),
          retry: group({ max: integer({ min: 0 }) }),
        },
      ),
    )

    expect(problems).toEqual([
      'a must be a whole number, not "x"',
      'b is required',
      'retry.max must be a whole number of at least 0, not -1',
      'other is not an option',
    ])
  })

  it('answers an unknown name with the nearest known one', () => {
    const check = (name: string) =>
      problemsOf(() =>
        checkOptions('a test', { [name]: 1 }, { leaseMs: integer({ default: 1 }), alpha: optional(integer()) }),
      )

    expect(check('leaseMS')).toEqual(['leaseMS is not an option; did you mean "leaseMs"?'])
    expect(check('lease')).toEqual(['lease is not an option; did you mean "leaseMs"?'])
    expect(check('alhpa')).toEqual(['alhpa is not an option; did you mean "alpha"?'])
    expect(check('beta')).toEqual(['beta is not an option'])
    expect(check('__proto__x')).toEqual(['__proto__x is not an option'])
  })

  it('checks relations once every value is right by itself', () => {
    const relation = ({ low, high }: { low: number; high: number }, report: rules.Report) => {
      if (low > high) report('low', `must not be above high (${high})`)
    }
    const check = (options: unknown) =>
      problemsOf(() => checkOptions('a test', options, { low: integer(), high: integer() }, relation))

    expect(check({ low: 2, high: 1 })).toEqual(['low must not be above high (1)'])
    expect(check({ low: 2, high: 'x' })).toEqual(['high must be a whole number, not "x"'])
  })

  it('says of what class an object is that is no plain one', () => {
    const check = (options: unknown) => problemsOf(() => checkOptions('a test', options, {}))

    expect(check(new Map())).toEqual(['options must be an object, not an instance of Map'])
    expect(check(Object.create({ constructor: 1 }))).toEqual(['options must be an object, not an object'])
  })

  it.each([[[]], ['x'], [1], [new Map()]])('refuses %s in place of an object', (options) => {
    expect(problemsOf(() => checkOptions('a test', options, {}))).toEqual([
      expect.stringMatching(/^options must be an object, not /),
    ])
  })
})

describe('rules', () => {
  it.each([
    ['integer', integer({ min: 1, max: 9 }), 1.5, 'it must be a whole number from 1 to 9, not 1.5'],
    ['integer', integer({ max: 9 }), 10, 'it must be a whole number of at most 9, not 10'],
    ['integer', integer(), 2 ** 53, 'it must be a whole number, not 9007199254740992'],
    ['integer', integer(), Number.NaN, 'it must be a whole number, not NaN'],
    ['integer', integer(), null, 'it must be a whole number, not null'],
    ['number', rules.number(), Number.POSITIVE_INFINITY, 'it must be a number, not Infinity'],
    ['positive', rules.positive(), 0, 'it must be a number above 0, not 0'],
    ['boolean', rules.boolean(), 'yes', 'it must be true or false, not "yes"'],
    ['oneOf', rules.oneOf(['high', 'normal', 'low']), 'x', 'it must be "high", "normal" or "low", not "x"'],
    ['oneOf', rules.oneOf(['high', 'low']), 'hig', 'it must be "high" or "low", not "hig"; did you mean "high"?'],
    ['text', rules.text(), '', 'it must not be empty'],
    ['text', rules.text({ maxLength: 3 }), 'abcd', 'it must have at most 3 characters, not 4'],
    ['text', rules.text({ pattern: { test: /^a/, words: 'a word with a' } }), 'b', 'it must be a word with a, not "b"'],
    ['text', rules.text({ secret: true }), 12, 'it must be text'],
    ['callback', rules.callback(), {}, 'it must be a function, not an object'],
    ['record', rules.record(integer()), { x: 'y' }, 'it.x must be a whole number, not "y"'],
    [
      'parsed',
      rules.parsed(() => {
        throw new Error('must be a rate')
      }),
      1,
      'it must be a rate',
    ],
    ['optional', optional(integer()), 'x', 'it must be a whole number, not "x"'],
  ])('%s reports what is wrong', (_, rule, value, problem) => {
    expect(problemOf(rule, value)).toBe(problem)
  })

  it.each([
    ['integer', integer({ min: 1, max: 9 }), 9],
    ['number', rules.number(), -0.5],
    ['positive', rules.positive(), 0.1],
    ['boolean', rules.boolean({ default: true }), undefined],
    ['oneOf', rules.oneOf(['high', 'low'], { default: 'low' }), undefined],
    ['text', rules.text({ minLength: 0 }), ''],
    ['callback', rules.callback(), () => 1],
    ['record', rules.record(integer()), { __proto__: null, x: 1 }],
    ['optional', optional(integer({ default: 1 })), undefined],
  ])('%s takes what is right', (_, rule, value) => {
    expect(problemOf(rule, value)).toBeUndefined()
  })
})
