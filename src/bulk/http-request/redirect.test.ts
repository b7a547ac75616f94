import { describe, expect, it } from 'vitest'
import type { Call, HttpMethod } from './payload.ts'
import { isRedirect, redirected } from './redirect.ts'
import { Refusal } from './refusal.ts'

const call = (method: HttpMethod, url = 'https://a.test/one'): Call => ({
  method,
  url: new URL(url),
  headers: {
    accept: '*/*',
    authorization: 'Bearer 1',
    cookie: 'a=1',
    'x-api-key': 'k',
    'content-type': 'text/plain',
    'user-agent': 'u',
  },
  body: method === 'GET' || method === 'HEAD' ? undefined : 'text',
})

it.each([301, 302, 303, 307, 308])('%i with a location is a redirect', (status) => {
  expect(isRedirect(status, '/x')).toBe(true)
})

it.each([
  [300, '/x'],
  [304, '/x'],
  [200, '/x'],
  [301, undefined],
  [301, ''],
])('%i with the location %o is none', (status, location) => expect(isRedirect(status, location)).toBe(false))

describe('method and body', () => {
  it.each<[number, HttpMethod, HttpMethod]>([
    [301, 'GET', 'GET'],
    [302, 'HEAD', 'HEAD'],
    [303, 'GET', 'GET'],
    [303, 'HEAD', 'HEAD'],
    [301, 'POST', 'GET'],
    [302, 'POST', 'GET'],
    [303, 'POST', 'GET'],
    [303, 'PUT', 'GET'],
    [303, 'DELETE', 'GET'],
    [301, 'PUT', 'PUT'],
    [302, 'DELETE', 'DELETE'],
    [307, 'POST', 'POST'],
    [308, 'PATCH', 'PATCH'],
  ])('%i makes of %s a %s', (status, from, to) => {
    const next = redirected(call(from), status, '/two')

    const keepsBody = to !== 'GET' && to !== 'HEAD'
    expect(next.method).toBe(to)
    expect(next.body).toBe(keepsBody ? 'text' : undefined)
    if (from !== to) expect(next.headers).not.toHaveProperty('content-type')
  })
})

describe('headers', () => {
  it('all go along within the origin', () => {
    expect(redirected(call('GET'), 302, '/two').headers).toEqual(call('GET').headers)
  })

  it.each(['https://b.test/', 'https://a.test:8443/', 'https://x.a.test/'])(
    'that may be secret stay behind when it goes to %s',
    (location) => {
      expect(redirected(call('PUT'), 307, location).headers).toEqual({
        accept: '*/*',
        'content-type': 'text/plain',
        'user-agent': 'u',
      })
    },
  )
})

describe('the target', () => {
  it.each([
    ['two?x=1', 'https://a.test/two?x=1'],
    ['//b.test/x', 'https://b.test/x'],
    ['https://b.test', 'https://b.test/'],
  ])('%s is %s', (location, url) => expect(redirected(call('GET'), 301, location).url.href).toBe(url))

  it('may become https', () => {
    expect(redirected(call('GET', 'http://a.test'), 301, 'https://a.test/').url.protocol).toBe('https:')
  })

  it.each([
    ['http://a.test/', 'redirects from https to http'],
    ['ftp://a.test/', 'redirects to ftp:, which is neither http nor https'],
    ['javascript:alert(1)', 'redirects to javascript:'],
    ['https://user:pw@a.test/', 'redirects to a URL with a user name or password (a.test)'],
    ['https://[', 'redirects to what is no URL'],
  ])('%s is refused', (location, message) => {
    expect(() => redirected(call('GET'), 301, location)).toThrow(message)
    expect(() => redirected(call('GET'), 301, location)).toThrow(Refusal)
  })
})
