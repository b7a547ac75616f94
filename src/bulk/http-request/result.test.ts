import { describe, expect, it } from 'vitest'
import type { AnswerHeaders } from '../../limits/answer-headers.ts'
import type { AnswerBody } from './answer-body.ts'
import { resultOf, textOf } from './result.ts'

const bodyOf = (bytes: Buffer | string, more: Partial<AnswerBody> = {}): AnswerBody => ({
  bytes: Buffer.from(bytes as string),
  isDecoded: true,
  isTruncated: false,
  wireBytes: 7,
  ...more,
})
const result = (headers: AnswerHeaders, body: AnswerBody) =>
  resultOf({ status: 200, headers, body }, { durationMs: 12.6, redirects: 1 })
const type = (name: string) => ({ 'content-type': name })

it('says what came, how much of it, and how long it took', () => {
  expect(result(type('text/plain'), bodyOf('hello'))).toEqual({
    status: 200,
    headers: { 'content-type': 'text/plain' },
    bodyType: 'text',
    body: 'hello',
    truncated: false,
    wireBytes: 7,
    decodedBytes: 5,
    durationMs: 13,
    redirects: 1,
  })
})

describe('the body', () => {
  it.each(['application/json', 'application/json; charset=utf-8', 'application/vnd.github+json', 'Application/JSON'])(
    'is a JSON value when it is %s',
    (name) => expect(result(type(name), bodyOf('{"a":1}'))).toMatchObject({ bodyType: 'json', body: { a: 1 } }),
  )

  it('is text when it says it is JSON and is not, or was cut', () => {
    expect(result(type('application/json'), bodyOf('{"a":'))).toMatchObject({ bodyType: 'text', body: '{"a":' })
    expect(result(type('application/json'), bodyOf('12', { isTruncated: true }))).toMatchObject({
      bodyType: 'text',
      body: '12',
      truncated: true,
    })
  })

  it.each(['text/html', 'application/xml', 'image/svg+xml', 'application/x-ndjson', ''])(
    'is text when its type is %o',
    (name) => expect(result(type(name), bodyOf('<a/>'))).toMatchObject({ bodyType: 'text', body: '<a/>' }),
  )

  it('is read in the alphabet it names', () => {
    const latin1 = Buffer.from([0xe4, 0xf6])

    expect(result(type('text/plain; charset="ISO-8859-1"'), bodyOf(latin1)).body).toBe('äö')
  })

  it.each([
    ['bytes of an image', type('image/png'), bodyOf(Buffer.from([1, 2, 255]))],
    ['text that is none', type('text/plain'), bodyOf(Buffer.from([1, 2, 255]))],
    ['an unknown alphabet', type('text/plain; charset=klingon'), bodyOf(Buffer.from([1, 2, 255]))],
    ['no type and no text', {}, bodyOf(Buffer.from([1, 2, 255]))],
    ['an encoding not undone', type('text/plain'), bodyOf(Buffer.from([1, 2, 255]), { isDecoded: false })],
  ])('is base64 when it is %s', (_, headers, body) => {
    expect(result(headers, body)).toMatchObject({ bodyType: 'base64', body: 'AQL/' })
  })

  it('is null when there is none, which is not the JSON value null', () => {
    expect(result(type('application/json'), bodyOf(''))).toMatchObject({ bodyType: 'empty', body: null })
    expect(result(type('application/json'), bodyOf('null'))).toMatchObject({ bodyType: 'json', body: null })
  })

  it('leaves out a letter that was cut in half', () => {
    const cut = Buffer.from('aä').subarray(0, 2)

    expect(result(type('text/plain'), bodyOf(cut, { isTruncated: true }))).toMatchObject({
      bodyType: 'text',
      body: 'a',
    })
  })
})

describe('the headers', () => {
  it('are those that say something about the answer', () => {
    const headers = {
      etag: '"1"',
      link: ['<a>; rel="next"', '<b>; rel="last"'],
      'x-ratelimit-remaining': '4',
      'x-rate-limit-reset': '5',
      ratelimit: '"a";r=1',
      'ratelimit-policy': '"a";q=2',
      'x-request-id': 'r',
      'set-cookie': ['secret=1'],
      server: 'x',
      connection: 'close',
      'content-encoding': 'gzip',
    }

    expect(result(headers, bodyOf('x')).headers).toEqual({
      etag: '"1"',
      link: '<a>; rel="next", <b>; rel="last"',
      'x-ratelimit-remaining': '4',
      'x-rate-limit-reset': '5',
      ratelimit: '"a";r=1',
      'ratelimit-policy': '"a";q=2',
      'x-request-id': 'r',
    })
  })

  it('name the encoding where it was not undone', () => {
    expect(result({ 'content-encoding': 'zstd' }, bodyOf('x', { isDecoded: false })).headers).toEqual({
      'content-encoding': 'zstd',
    })
  })
})

it('finds a reason only in what is text', () => {
  expect(textOf(bodyOf('no such user'), type('text/plain'))).toBe('no such user')
  expect(textOf(bodyOf('no such user'), type('image/png'))).toBe('')
  expect(textOf(bodyOf('no such user', { isDecoded: false }), type('text/plain'))).toBe('')
})
