import { describe, expect, it } from 'vitest'
import { readPayload } from './payload.ts'
import { Refusal } from './refusal.ts'

const settings = { maxRequestBytes: 1_000, userAgent: 'sluice' }
const read = (payload: unknown) => readPayload(payload, settings)
const url = 'https://api.example.com/x'

describe('a payload', () => {
  it('is a GET of its url that expects success, unless it says more', () => {
    const { call, expect: expected } = read({ url: `${url}?a=1#part` })

    expect(call.method).toBe('GET')
    expect(call.url.pathname + call.url.search).toBe('/x?a=1')
    expect(call.body).toBeUndefined()
    expect(call.headers).toEqual({ accept: '*/*', 'accept-encoding': 'gzip, deflate, br', 'user-agent': 'sluice' })
    expect(expected).toEqual(['2xx'])
  })

  it('has its headers in lower case, above those of the processor', () => {
    const { call } = read({ url, headers: { 'User-Agent': 'mine', Authorization: 'Bearer 1', 'X-Empty': '' } })

    expect(call.headers).toMatchObject({ 'user-agent': 'mine', authorization: 'Bearer 1', 'x-empty': '' })
  })

  it.each([
    ['text', 'text', 'text/plain; charset=utf-8'],
    [{ a: [1] }, '{"a":[1]}', 'application/json'],
    [[1, 2], '[1,2]', 'application/json'],
  ])('sends %o as %s', (body, text, contentType) => {
    const { call } = read({ method: 'POST', url, body })

    expect(call.body).toBe(text)
    expect(call.headers['content-type']).toBe(contentType)
  })

  it('may name the type of its body itself', () => {
    const { call } = read({ method: 'PUT', url, body: '<a/>', headers: { 'Content-Type': 'text/xml' } })

    expect(call.headers['content-type']).toBe('text/xml')
  })

  it('takes header names that mean something to JavaScript as names', () => {
    const headers = JSON.parse('{"__proto__":"a","constructor":"b"}')

    expect(Object.entries(read({ url, headers }).call.headers)).toContainEqual(['constructor', 'b'])
  })
})

describe('a payload is refused, by field and with what is allowed,', () => {
  it.each<[string, unknown, string]>([
    ['without one', undefined, 'The payload must be an object such as'],
    ['as a list', [], 'not an array'],
    ['without url', {}, 'url is required'],
    ['with a relative url', { url: '/x' }, 'url must be an absolute URL such as'],
    ['with another scheme', { url: 'file:///etc/passwd' }, 'url must start with http:// or https://, not file:'],
    ['with a user in the url', { url: 'https://user@h.test' }, 'url must not hold a user name or password'],
    [
      'with a line end in the url',
      { url: 'https://h.test/\r\nx: y' },
      'url must not hold spaces or control characters',
    ],
    ['with a space in front of the url', { url: ` ${url}` }, 'url must not hold spaces'],
    ['with an endless url', { url: `${url}?${'a'.repeat(9_000)}` }, 'url must have at most 8192 characters'],
    ['with CONNECT', { url, method: 'CONNECT' }, 'method must be "GET", "HEAD"'],
    ['with a method in lower case', { url, method: 'post' }, 'did you mean "POST"?'],
    ['with a body for GET', { url, body: 'x' }, 'body must not be given with GET'],
    ['with a number as body', { url, method: 'POST', body: 5 }, 'body must be text, an object or an array, not 5'],
    ['with null as body', { url, method: 'POST', body: null }, 'body must be text, an object or an array, not null'],
    [
      'with too large a body, counted in bytes',
      { url, method: 'POST', body: 'ä'.repeat(501) },
      'body must have at most 1000 bytes, not 1002',
    ],
    ['with Host', { url, headers: { Host: 'other' } }, 'headers["Host"] must not be given: the processor sets it'],
    ['with Connection', { url, headers: { connection: 'x' } }, 'must not be given: it belongs to the connection'],
    ['with Transfer-Encoding', { url, headers: { 'Transfer-Encoding': 'chunked' } }, 'it belongs to the connection'],
    ['with a line end in a header', { url, headers: { a: 'x\r\nHost: y' } }, 'headers["a"] must not hold line ends'],
    ['with a line end in a name', { url, headers: { 'a\r\nb': 'x' } }, 'must have a name of letters'],
    ['with an empty name', { url, headers: { '': 'x' } }, 'must have a name of letters'],
    ['with letters beyond Latin-1', { url, headers: { a: '日' } }, 'headers["a"] must not hold'],
    ['with a number as header', { url, headers: { a: 5 } }, 'headers["a"] must be text, not 5'],
    ['with a header twice', { url, headers: { A: '1', a: '2' } }, 'headers["a"] must not be given twice'],
    ['with a list of headers', { url, headers: [] }, 'headers must be an object of texts'],
    ['with too many headers', { url, headers: { a: 'x'.repeat(17_000) } }, 'headers must have at most 16384 bytes'],
    ['with nothing expected', { url, expect: [] }, 'expect must be a list of statuses such as [200, "2xx"], not []'],
    ['with 99 expected', { url, expect: [99] }, 'expect[0] must be a whole number from 100 to 599'],
    ['with 6xx expected', { url, expect: ['6xx'] }, 'expect[0] must be a status such as 200 or "2xx", not "6xx"'],
    ['with a field misspelt', { url, hedaers: {} }, 'did you mean "headers"?'],
  ])('%s', (_, payload, message) => {
    expect(() => read(payload)).toThrow(message)
    expect(() => read(payload)).toThrow(Refusal)
  })

  it('with all its faults at once', () => {
    expect(() => read({ url: 'x', method: 'GIT', expect: 200 })).toThrow(/method .*; url .*; expect /)
  })

  it('without showing what may be secret', () => {
    for (const payload of [
      { url: 'https://user:hunter2@h.test' },
      { url: 'https://h.test/?token=hunter2 ' },
      { url, headers: { authorization: 'hunter2\n' } },
    ]) {
      expect(() => read(payload)).toThrow(/^(?!.*hunter2)/s)
    }
  })
})
