import { setFlagsFromString } from 'node:v8'
import { runInNewContext } from 'node:vm'
import { expect, it } from 'vitest'
import { detached } from './detached.ts'

const TEXT_BYTES = 1_000_000
const TEXTS = 50

/** Bytes that stay while one piece of each of many long texts is kept. */
function bytesKept(cut: (text: string) => string): number {
  setFlagsFromString('--expose-gc')
  const collect = runInNewContext('gc') as () => void
  collect()
  const before = process.memoryUsage().heapUsed
  const kept = Array.from({ length: TEXTS }, (_, number) =>
    cut(Buffer.alloc(TEXT_BYTES, 97 + (number % 26)).toString()),
  )
  collect()
  const bytes = process.memoryUsage().heapUsed - before
  expect(kept).toHaveLength(TEXTS)
  return bytes
}

it('does not keep the text it was cut out of, as a piece does', () => {
  expect(bytesKept((text) => text.slice(10, 50))).toBeGreaterThan((TEXTS / 2) * TEXT_BYTES)
  expect(bytesKept((text) => detached(text.slice(10, 50)))).toBeLessThan(TEXT_BYTES)
})

it.each(['', 'short', 'a text that is long enough to be cut out', 'ein längerer Text – mit Zeichen 𝄞 aller Art'])(
  'is the same text: %s',
  (text) => {
    expect(detached(text)).toBe(text)
  },
)
