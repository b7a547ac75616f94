import { expect, it } from 'vitest'
import { isStreamId, isUint64 } from './uint64.ts'

it.each(['0', '007', '18446744073709551615'])('takes %s', (text) => expect(isUint64(text)).toBe(true))

it.each(['', '-1', '1.0', 'x', ' 1', '18446744073709551616', '000000000000000000001'])('does not take %o', (text) =>
  expect(isUint64(text)).toBe(false),
)

it('takes the id of an entry, of which the second part may be missing', () => {
  expect(['0', '1768000000000-0', '18446744073709551615-18446744073709551615'].map(isStreamId)).not.toContain(false)
  expect(['', '-', '1-', '-1', '1-2-3', '1-18446744073709551616'].map(isStreamId)).not.toContain(true)
})
