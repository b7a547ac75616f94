import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { decodeRecord, encodeError, encodeRecord, readPayload, readRecord } from './record.ts'

const line = fc.string({ unit: 'grapheme', minLength: 1 }).filter((text) => !text.includes('\n'))
const payload = fc.oneof(
  fc.json(),
  fc.string({ unit: 'grapheme' }).map((text) => JSON.stringify(text)),
)

describe('a record', () => {
  it('is read back as it was written', () => {
    const createdAt = fc.integer({ min: 0, max: 4e12 })
    fc.assert(
      fc.property(
        createdAt,
        line,
        fc.option(line),
        fc.option(fc.nat()),
        payload,
        fc.constantFrom(1, 2, 1_000_000_000),
        (created, type, id, maxRetries, json, cost) => {
          const options = maxRetries === null ? '' : JSON.stringify({ maxRetries })

          const record = decodeRecord(encodeRecord(created.toString(36), type, id ?? '', options, json, cost))

          expect(record).toEqual({
            cost,
            history: { attempts: 0, stalls: 0, throttles: 0, since: 0, reason: '', error: undefined },
            createdAt: created,
            type,
            givenId: id ?? undefined,
            options: maxRetries === null ? {} : { maxRetries },
            payload: json,
          })
        },
      ),
    )
  })

  it('is read as it is, whatever was read before it', () => {
    const parts = fc.record({
      history: fc.constantFrom('', '1,0,0,0,retry,', '*2;', '*2;1,0,0,0,retry,'),
      type: fc.constantFrom('T', 'T2', 'U'),
      id: fc.constantFrom('', 'T', 'a'),
      options: fc.constantFrom('', '{"maxRetries":3}'),
      payload: fc.constantFrom('null', '1', '12', '"T"'),
      isDamaged: fc.nat(9).map((number) => number === 0),
    })
    fc.assert(
      fc.property(fc.array(parts, { minLength: 2 }), (all) => {
        for (const { history, type, id, options, payload: json, isDamaged } of all) {
          const text = `${history}\n1\n${type}\n${id}\n${options}\n${json}`
          if (isDamaged) expect(() => decodeRecord(text.replace(/\n.*$/, ''))).toThrow()
          expect(decodeRecord(text)).toMatchObject({
            cost: history.startsWith('*') ? 2 : 1,
            history: { attempts: history.endsWith(',') ? 1 : 0 },
            type,
            givenId: id === '' ? undefined : id,
            options: options === '' ? {} : { maxRetries: 3 },
            payload: json,
          })
        }
      }),
    )
  })

  it('keeps line breaks and separators of its payload', () => {
    const json = JSON.stringify({ text: 'a\nb,c|d\u2028', list: [], large: 1e300 }, undefined, 2)

    expect(decodeRecord(encodeRecord('1', 'T', '', '', json)).payload).toBe(json)
  })

  it('has a history once something has happened to it', () => {
    const error = encodeError(new RangeError('a, b\nc'))

    const { history } = decodeRecord(`3,1,2,1700000000000,retry,${error}${encodeRecord('1', 'T', '', '', 'null')}`)

    expect(history).toMatchObject({
      attempts: 3,
      stalls: 1,
      throttles: 2,
      since: 1_700_000_000_000,
      reason: 'retry',
    })
    expect(history.error).toMatchObject({ name: 'RangeError', message: 'a, b\nc' })
  })

  it('keeps whatever an error says', () => {
    fc.assert(
      fc.property(fc.string({ unit: 'grapheme' }), (message) => {
        const said = `${message}\u2028\u2029\u0085,\r\n`
        const text = `1,0,0,0,retry,${encodeError(said)}${encodeRecord('1', 'T', '', '', 'null')}`

        expect(decodeRecord(text).history.error?.message).toBe(said)
      }),
    )
  })

  it.each([
    ['its history is none', 'nonsense\n1\nT\n\n\nnull'],
    ['its error is no JSON', '1,0,0,0,retry,{\n1\nT\n\n\nnull'],
    ['its cost is no number', '*x;\n1\nT\n\n\nnull'],
    ['its cost has no end', '*5\n1\nT\n\n\nnull'],
    ['its options are no JSON', '\n1\nT\n\n{\nnull'],
    ['lines are missing', '\n1\nT\nnull'],
    ['it is a single line', 'nonsense'],
    ['it is empty', ''],
  ])('is not read when %s, and shown all the same', (_, text) => {
    expect(() => decodeRecord(text)).toThrow()

    const shown = readRecord(text)
    expect(shown).toMatchObject({ type: '', history: { attempts: 0, error: { name: 'Error' } } })
    expect(readPayload(shown.payload)).toBe(text)
  })

  it.each(['5', 'null', '{}', '{"name":"E","message":{}}'])('shows no error that is none: %s', (error) => {
    const shown = readRecord(`1,0,0,0,retry,${error}\n1\nT\n\n\nnull`)

    expect(shown.history.error?.message).toContain("not a job's error")
  })

  it('shows why a damaged one died', () => {
    expect(readRecord('3,1,0,0,unreadable,{"name":"E","message":"m"}\nnonsense')).toMatchObject({
      history: { attempts: 3, stalls: 1, reason: 'unreadable', error: { name: 'E', message: 'm' } },
    })
  })
})

describe('an error', () => {
  function decoded(error: unknown) {
    const text = encodeError(error)
    expect(text).not.toContain('\n')
    return JSON.parse(text)
  }

  it('has no half of a surrogate pair, which scripts could not read', () => {
    const error = new Error(`half \ud83d and ${'x'.repeat(4_085)}😀`)
    error.name = 'half \udc00'

    expect(encodeError(error)).not.toMatch(/\\ud[89a-f]/)
  })

  it('keeps name, message and stack on one line', () => {
    expect(decoded(new TypeError('two\nlines'))).toMatchObject({
      name: 'TypeError',
      message: 'two\nlines',
      stack: expect.stringContaining('record.test'),
    })
  })

  it.each([
    ['text', 'text'],
    [undefined, 'undefined'],
    [null, 'null'],
    [42, '42'],
    [{ toString: () => 'shown' }, 'shown'],
  ])('may be anything that was thrown', (thrown, message) => {
    expect(decoded(thrown)).toEqual({ name: 'Error', message })
  })

  it.each([
    Object.create(null),
    {
      toString() {
        throw new Error('no')
      },
    },
    Object.defineProperty(new Error('x'), 'message', {
      get() {
        throw new Error('no')
      },
    }),
    new Proxy(
      {},
      {
        get() {
          throw new Error('no')
        },
        getPrototypeOf() {
          throw new Error('no')
        },
      },
    ),
  ])('that cannot be shown is said to be one', (thrown) => {
    expect(decoded(thrown)).toEqual({ name: 'Error', message: 'an error that cannot be shown' })
  })

  it('is cut at 4,096 characters', () => {
    expect(decoded('x'.repeat(10_000)).message).toHaveLength(4_097)
  })

  it('is well-formed Unicode also where it was cut or was not before', () => {
    fc.assert(
      fc.property(fc.string({ unit: 'binary' }), (text) => {
        expect(decoded(`${'x'.repeat(4_095)}😀${text}`).message.isWellFormed?.() ?? true).toBe(true)
        expect(Buffer.from(encodeError(text)).toString()).toBe(encodeError(text))
      }),
    )
  })
})
