import { afterAll, beforeAll, expect, it } from 'vitest'
import { startRedis, type TestRedis } from '../testing/redis-server.ts'
import { keyOf, slotOf } from './key-slot.ts'

let server: TestRedis
beforeAll(async () => {
  server = await startRedis({ cluster: true })
})
afterAll(() => server.stop())

it.each(['', 'a', 'sluice:{mail}:mail:queue', '{}a', '{}{a}', 'a{b', 'a}b{', '{{a}}', 'ünï{cödé}', 'x'.repeat(300)])(
  '%j is in the slot that Redis puts it in',
  async (key) => {
    expect(slotOf(key)).toBe(await server.client().call('CLUSTER', 'KEYSLOT', key))
  },
)

it('finds the key of a command', () => {
  expect(keyOf('GET', ['key'])).toBe('key')
  expect(keyOf('fcall', ['name', 2, 'first', 'second', 'arg'])).toBe('first')
  expect(keyOf('EVAL', ['return 1', 0, 'arg'])).toBeUndefined()
  expect(keyOf('XREAD', ['COUNT', 1, 'BLOCK', 5, 'STREAMS', 'stream', '$'])).toBe('stream')
  expect(keyOf('BLPOP', ['list', 1])).toBe('list')
  expect(keyOf('PING', [])).toBeUndefined()
  expect(keyOf('INFO', ['memory'])).toBeUndefined()
})
