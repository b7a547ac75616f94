import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { parseJobKey } from './job-place.ts'
import { fromToken, idDigest, levels, nameRule, problemOfName, toLaneToken, toToken } from './names.ts'

/** Names that may be given, with a liking for what has a meaning in keys. */
const name = fc
  .array(fc.oneof(fc.constantFrom(':', '!', '%', '{', '}', ' ', '%3A', '\u2028', '*'), fc.string({ unit: 'binary' })), {
    minLength: 1,
    maxLength: 8,
  })
  .map((parts) => parts.join(''))
  .filter((text) => problemOfName(text) === undefined)

describe('a token', () => {
  it('is read back as the name it was made of', () => {
    fc.assert(fc.property(name, (each) => fromToken(toToken(each)) === each))
  })

  it('is another one for another name', () => {
    fc.assert(fc.property(name, name, (a, b) => (toToken(a) === toToken(b)) === (a === b)))
  })

  it('holds nothing that separates the parts of a key, or starts an ordered lane', () => {
    fc.assert(fc.property(name, (each) => !/[:!{}\s]/.test(toToken(each))))
  })

  it.each(['a}:b', '{t2}', 'a:b', '!a', '100%', 'a b', '../', 'ü', '名前', '😀'])(
    'keeps %s apart from its own token',
    (each) => {
      const token = toToken(each)

      expect(fromToken(token)).toBe(each)
      if (token !== each) expect(toToken(token)).not.toBe(token)
    },
  )

  it('of an ordered lane is another than that of an unordered one, whatever their names', () => {
    fc.assert(fc.property(name, name, (a, b) => toLaneToken(a, true) !== toLaneToken(b, false)))
  })
})

describe('a job’s key', () => {
  it('names its place', () => {
    const sequence = fc.bigInt({ min: 1n, max: 9_000_000_000_000_000n })
    fc.assert(
      fc.property(
        fc.constantFrom(...levels),
        name,
        fc.boolean(),
        sequence,
        name,
        (level, lane, isOrdered, at, tenant) => {
          const tenantToken = toToken(tenant)
          const key = `${level}:${toLaneToken(lane, isOrdered)}:${at}:${tenantToken}`

          const place = { level, lane, isOrdered, action: undefined, actionLane: '', tenant, tenantToken }
          expect(parseJobKey(key)).toStrictEqual(place)
        },
      ),
    )
  })

  it.each([
    '',
    'order-1',
    'urgent:default:1:a',
    'normal:default:a',
    'normal:default:x1:a',
    'normal:default:1:',
    'xnormal:a:1:b',
  ])('is not %o', (id) => expect(parseJobKey(id)).toBeUndefined())

  it('is one also where a name in it cannot be read', () => {
    expect(parseJobKey('normal:%:1:%zz')).toMatchObject({ lane: '%', tenant: '%zz' })
  })
})

describe('a name', () => {
  it.each([undefined, null, 1, {}, ['a'], Symbol('a')])('must be text, not %o', (value) => {
    expect(problemOfName(value)).toBe('must be text')
  })

  it.each([
    ['', 'must have 1 to 256 characters, not 0'],
    ['x'.repeat(257), 'must have 1 to 256 characters, not 257'],
    ['a\nb', 'must not contain control characters'],
    ['a\u0000', 'must not contain control characters'],
    ['a\u007f', 'must not contain control characters'],
    ['a\u009b2J', 'must not contain control characters'],
    ['.', 'must not be "." or "..", which no URL can name'],
    ['..', 'must not be "." or "..", which no URL can name'],
    ['a\ud800', 'must be well-formed Unicode (it has half of a surrogate pair)'],
    ['\udc00a', 'must be well-formed Unicode (it has half of a surrogate pair)'],
  ])('is refused with a reason', (value, problem) => {
    expect(problemOfName(value)).toBe(problem)
  })

  it('is refused as an option with its path', () => {
    const problems: string[] = []

    nameRule('a\nb', 'tenant', (path, problem) => problems.push(`${path} ${problem}`))

    expect(problems).toEqual(['tenant must not contain control characters'])
  })

  it.each(['x', 'x'.repeat(256), '😀', 'a:b', '__proto__', '{q}', ' ', '...', '.a', 'a..'])(
    'may be anything else',
    (value) => {
      expect(problemOfName(value)).toBeUndefined()
    },
  )
})

it('gives an id another digest in another tenant', () => {
  fc.assert(
    fc.property(name, name, name, name, (tenant, id, otherTenant, otherId) => {
      const isSame = tenant === otherTenant && id === otherId
      return (idDigest(tenant, id) === idDigest(otherTenant, otherId)) === isSame
    }),
  )
})
