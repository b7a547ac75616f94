import { expect, it } from 'vitest'
import { createApiKey } from './api-keys.ts'
import { isLoopback, refuseOpenBinding } from './binding.ts'

it.each(['127.0.0.1', '127.8.9.1', '::1', '[::1]', 'localhost', 'LOCALHOST', 'app.localhost', '::ffff:127.0.0.1'])(
  'takes %s for this machine',
  (host) => {
    expect(isLoopback(host)).toBe(true)
    expect(() => refuseOpenBinding(host, [])).not.toThrow()
  },
)

it.each([
  '0.0.0.0',
  '::',
  '10.0.0.1',
  '127.0.0.1.evil.example',
  'localhost.evil.example',
  '',
  'example.com',
  '1127.0.0.1',
])('refuses to listen on %s without keys, and says what to do', (host) => {
  expect(() => refuseOpenBinding(host, [])).toThrow(/no API keys.*createApiKey.*127\.0\.0\.1/)
  expect(() => refuseOpenBinding(host, [{ id: 'k', role: 'admin', hash: createApiKey().hash }])).not.toThrow()
})
