import { afterEach, beforeEach, expect, it, vi } from 'vitest'
import { manualClock } from '../../testing/manual-clock.ts'
import { LAST_WORDS_MS } from '../last-words.ts'
import { Duties } from './duties.ts'

beforeEach(() => void vi.useFakeTimers())
afterEach(() => void vi.useRealTimers())

it('waits for a store that does not answer by the time of the machine, though a test has stopped the clock', async () => {
  const asked = vi.fn(() => new Promise(() => {}))
  const duties = new Duties({
    name: 'q',
    requests: { run: asked },
    aggregates: { types: [] },
    clock: manualClock(),
    leaseMs: 15_000,
    graceMs: 30_000,
    unknownTypeMs: 1_000,
    log: () => {},
  } as unknown as ConstructorParameters<typeof Duties>[0])
  let isClosed = false

  duties.serve()
  duties.look()
  const closing = duties.close().then(() => {
    isClosed = true
  })
  await vi.advanceTimersByTimeAsync(LAST_WORDS_MS - 1)
  expect([asked.mock.calls.length, isClosed]).toEqual([1, false])
  await vi.advanceTimersByTimeAsync(1)

  await closing
})
