import { describe, expect, it } from 'vitest'
import { AllowedHosts } from './allowed-hosts.ts'
import { Refusal } from './refusal.ts'

const isAllowed = (rule: string, url: string): boolean => {
  try {
    new AllowedHosts([rule]).assertAllowed(new URL(url))
    return true
  } catch (error) {
    if (error instanceof Refusal) return false
    throw error
  }
}

it.each([
  ['api.example.com', 'https://api.example.com/x'],
  ['api.example.com', 'http://api.example.com:80/x'],
  ['api.example.com', 'HTTPS://API.EXAMPLE.COM:443'],
  ['API.Example.com', 'https://api.example.com'],
  ['api.example.com:8443', 'https://api.example.com:8443'],
  ['api.example.com:443', 'https://api.example.com'],
  ['api.example.com:*', 'http://api.example.com:1234'],
  ['*.example.org', 'https://a.example.org'],
  ['*.example.org', 'https://a.b.example.org'],
  ['*.example.org:8080', 'http://a.example.org:8080'],
  ['*', 'https://anything.test'],
  ['*:*', 'https://anything.test:99'],
  ['127.0.0.1:8080', 'http://127.0.0.1:8080'],
  ['127.0.0.1:8080', 'http://0x7f.1:8080'],
  ['127.0.0.1:8080', 'http://2130706433:8080'],
  ['[::1]:8080', 'http://[0:0:0:0:0:0:0:1]:8080'],
  ['bücher.example', 'https://xn--bcher-kva.example'],
])('%s allows %s', (rule, url) => expect(isAllowed(rule, url)).toBe(true))

it.each([
  ['api.example.com', 'https://example.com'],
  ['api.example.com', 'https://xapi.example.com'],
  ['api.example.com', 'https://api.example.com.evil.test'],
  ['api.example.com', 'https://api.example.com.'],
  ['api.example.com', 'https://api.example.com:8443'],
  ['api.example.com', 'http://api.example.com:443'],
  ['api.example.com:443', 'http://api.example.com'],
  ['api.example.com:8443', 'https://api.example.com'],
  ['*.example.org', 'https://example.org'],
  ['*.example.org', 'https://badexample.org'],
  ['*.example.org', 'https://a.example.org.'],
  ['*.example.org', 'https://a.example.org:8080'],
  ['*', 'https://anything.test:8080'],
  ['127.0.0.1:8080', 'http://[::ffff:127.0.0.1]:8080'],
])('%s does not allow %s', (rule, url) => expect(isAllowed(rule, url)).toBe(false))

describe('a refusal', () => {
  const refusalOf = (hosts: string[], url: string) => () => new AllowedHosts(hosts).assertAllowed(new URL(url))

  it('names the host and what is allowed', () => {
    expect(refusalOf(['a.test', '*.b.test'], 'https://c.test/secret?token=1')).toThrow(
      'The host c.test is not in allowHosts (a.test, *.b.test).',
    )
  })

  it('says what to add when only the port is wrong', () => {
    expect(refusalOf(['a.test'], 'http://a.test:8080')).toThrow(
      'The port of a.test:8080 is not in allowHosts (a.test). Add "a.test:8080" if that is meant.',
    )
  })

  it('is short when the list is long or empty', () => {
    const many = Array.from({ length: 100 }, (_, index) => `h${index}.test`)

    expect(refusalOf(many, 'http://a.test')).toThrow('(h0.test, h1.test, h2.test, h3.test, h4.test and 95 more).')
    expect(refusalOf([], 'http://a.test')).toThrow('The host a.test is not in allowHosts (which is empty).')
  })
})

it.each([
  '',
  'https://api.example.com',
  'api.example.com/path',
  'user@api.example.com',
  'api.*.com',
  '**.example.org',
  '*example.org',
  '*.',
  'a b',
  'a.test:0',
  'a.test:65536',
  'a.test:http',
  '::1',
  '[::1',
  'a?b',
  'a#b',
  'a%41',
])('%o is no rule', (rule) => {
  expect(() => new AllowedHosts([rule])).toThrow('must be a host such as "api.example.com"')
})
