import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { InvalidJobError } from '../errors.ts'
import { decodeRecord } from '../store/record.ts'
import { type JobInput, Packer } from './submission.ts'

const NOW = 1_700_000_000_000

function pack(input: unknown, defaults: JobInput = {}, maxPayloadBytes = 262_144) {
  return new Packer(defaults, maxPayloadBytes).pack(input as JobInput, 7, NOW)
}

describe('packing', () => {
  it('fills in tenant, level and lane, and the rest from what jobs share', () => {
    const packed = pack({ payload: { a: 1 } }, { type: 'SEND', maxRetries: 2 })

    expect(packed).toMatchObject({ tenant: 'default', level: 'normal', lane: 'default', kind: 'fresh', instant: '' })
    expect(decodeRecord(packed.record)).toMatchObject({
      createdAt: NOW,
      type: 'SEND',
      givenId: undefined,
      options: { maxRetries: 2 },
      payload: '{"a":1}',
    })
  })

  it('lets a job’s own fields count more than what jobs share', () => {
    const defaults: JobInput = { type: 'A', tenant: 'a', level: 'low', lane: 'x', timeoutMs: 1 }

    const packed = pack({ type: 'B', tenant: 'b', level: 'high', lane: 'y', ordered: true, timeoutMs: 2 }, defaults)

    expect(packed).toMatchObject({ tenant: 'b', level: 'high', lane: '!y' })
    expect(decodeRecord(packed.record)).toMatchObject({ type: 'B', options: { timeoutMs: 2 } })
  })

  it('escapes names so that they cannot leave their place in a key', () => {
    expect(pack({ type: 'T', tenant: 'a:b', lane: '!x' })).toMatchObject({ tenant: 'a%3Ab', lane: '%21x' })
  })

  it.each([
    [{ id: 'order-1' }, 'named', ''],
    [{ delayMs: 5 }, 'later', '+5000'],
    [{ delayMs: 0 }, 'fresh', ''],
    [{ runAt: 1_000 }, 'later', '@1000000'],
    [{ runAt: new Date(1_000), id: 'order-1' }, 'later', '@1000000'],
  ])('knows what kind of job %o is', (input, kind, instant) => {
    expect(pack({ type: 'T', ...input })).toMatchObject({ kind, instant })
  })

  it('keeps every payload that JSON can hold', () => {
    fc.assert(
      fc.property(fc.jsonValue(), (payload) => {
        expect(JSON.parse(decodeRecord(pack({ type: 'T', payload }).record).payload)).toEqual(
          JSON.parse(JSON.stringify(payload)),
        )
      }),
    )
  })

  it('takes a payload of exactly the largest size, in bytes', () => {
    expect(() => pack({ type: 'T', payload: 'ü'.repeat(49) }, {}, 100)).not.toThrow()
    expect(() => pack({ type: 'T', payload: 'ü'.repeat(50) }, {}, 100)).toThrow('its payload has 102 bytes')
  })
})

describe('a job that cannot be submitted', () => {
  const circular: Record<string, unknown> = {}
  circular.self = circular
  const deep = JSON.parse(`${'['.repeat(50_000)}${']'.repeat(50_000)}`)

  it.each([
    ['no object', undefined, 'must be an object'],
    ['no object', null, 'must be an object'],
    ['no object', 'text', 'must be an object'],
    ['no object', 5, 'must be an object'],
    ['a list', [1], 'must be an object'],
    ['an unknown field', { type: 'T', piority: 1 }, 'unknown field "piority"'],
    ['no type', {}, 'its type is missing'],
    ['an empty type', { type: '' }, 'its type must have'],
    ['a type that is no text', { type: 5 }, 'its type must be text'],
    ['a tenant that is no text', { type: 'T', tenant: 5 }, 'its tenant must be text'],
    ['a tenant with a line break', { type: 'T', tenant: 'a\nb' }, 'its tenant must not contain'],
    ['a long tenant', { type: 'T', tenant: 'x'.repeat(257) }, 'its tenant must have 1 to 256'],
    ['half a character', { type: 'T', lane: '\ud800' }, 'its lane must be well-formed'],
    ['an unknown level', { type: 'T', level: 'urgent' }, 'its level must be high, normal or low'],
    ['an ordered that is neither', { type: 'T', ordered: 'yes' }, 'its ordered must be'],
    ['an empty id', { type: 'T', id: '' }, 'its id must have'],
    ['an id that is no text', { type: 'T', id: 5 }, 'its id must be text'],
    ['an id like a generated one', { type: 'T', id: 'normal:default:5:a' }, 'its id looks like a generated one'],
    ['one that no name could be', { type: 'T', id: 'normal:%:5:%zz' }, 'its id looks like a generated one'],
    ['a negative delay', { type: 'T', delayMs: -1 }, 'its delayMs must be'],
    ['no number as delay', { type: 'T', delayMs: Number.NaN }, 'its delayMs must be'],
    ['a delay of years', { type: 'T', delayMs: 1e12 }, 'its delayMs must be'],
    ['a delay as text', { type: 'T', delayMs: '5' }, 'its delayMs must be'],
    ['an invalid date', { type: 'T', runAt: new Date('never') }, 'its runAt must be'],
    ['a date as text', { type: 'T', runAt: '2030-01-01' }, 'its runAt must be'],
    ['a date too far ahead', { type: 'T', runAt: Date.now() + 1e12 }, 'its runAt must be'],
    ['two instants', { type: 'T', runAt: 5, delayMs: 5 }, 'both delayMs and runAt'],
    ['half a retry', { type: 'T', maxRetries: 1.5 }, 'its maxRetries must be'],
    ['endless retries', { type: 'T', maxRetries: Number.POSITIVE_INFINITY }, 'its maxRetries must be'],
    ['more retries than a processor may have', { type: 'T', maxRetries: 1_001 }, 'its maxRetries must be'],
    ['more time than a day', { type: 'T', timeoutMs: 86_400_001 }, 'its timeoutMs must be'],
    ['no time at all', { type: 'T', timeoutMs: 0 }, 'its timeoutMs must be'],
    ['a payload with a BigInt', { type: 'T', payload: 1n }, 'its payload cannot be written as JSON'],
    ['a payload that is a function', { type: 'T', payload: () => {} }, 'its payload cannot be written as JSON'],
    ['a payload that holds itself', { type: 'T', payload: circular }, 'its payload cannot be written as JSON'],
    ['a payload too deep', { type: 'T', payload: deep }, 'its payload'],
    ['a payload that throws', { type: 'T', payload: { toJSON: () => pack(undefined) } }, 'its payload cannot be'],
    ['a payload too large', { type: 'T', payload: 'x'.repeat(300_000) }, 'more than maxPayloadBytes (262144)'],
  ])('with %s is named by its place', (_, input, problem) => {
    const error = capture(() => pack(input))

    expect(error).toBeInstanceOf(InvalidJobError)
    expect(error).toMatchObject({ code: 'SLUICE_INVALID_JOB', index: 7 })
    expect(error.message).toContain('Job 7')
    expect(error.problem).toContain(problem)
  })

  it('is named by its id where it has one', () => {
    expect(capture(() => pack({ type: 'T', id: 'order-1', delayMs: -1 }))).toMatchObject({ jobId: 'order-1' })
  })

  it('is refused as such, whatever it is', () => {
    fc.assert(
      fc.property(
        fc.anything({ withNullPrototype: true, withBigInt: true, withDate: true, withMap: true }),
        (input) => {
          try {
            pack(input)
          } catch (error) {
            expect(error).toBeInstanceOf(InvalidJobError)
          }
        },
      ),
      { numRuns: 500 },
    )
  })

  it('does not spoil the jobs after it', () => {
    const packer = new Packer({ type: 'T' }, 1_000)
    expect(() => packer.pack({ tenant: '' }, 0, NOW)).toThrow(InvalidJobError)

    expect(packer.pack({ tenant: 'a' }, 1, NOW)).toMatchObject({ tenant: 'a' })
    expect(() => packer.pack({ tenant: '' }, 2, NOW)).toThrow(InvalidJobError)
  })
})

function capture(action: () => unknown): InvalidJobError {
  try {
    action()
  } catch (error) {
    return error as InvalidJobError
  }
  throw new Error('nothing was thrown')
}
