import { afterEach, beforeEach, expect, it, vi } from 'vitest'
import { systemClock } from '../../clock.ts'
import { manualClock } from '../../testing/manual-clock.ts'
import { LAST_WORDS_MS } from '../last-words.ts'
import { Duties } from './duties.ts'

beforeEach(() => void vi.useFakeTimers())
afterEach(() => void vi.useRealTimers())

function dutiesOf(parts: object): Duties {
  return new Duties({
    name: 'q',
    aggregates: { types: [] },
    clock: systemClock,
    leaseMs: 15_000,
    graceMs: 30_000,
    unknownTypeMs: 1_000,
    log: () => {},
    ...parts,
  } as unknown as ConstructorParameters<typeof Duties>[0])
}

it('waits for a store that does not answer by the time of the machine, though a test has stopped the clock', async () => {
  const asked = vi.fn(() => new Promise(() => {}))
  const duties = dutiesOf({ requests: { run: asked }, clock: manualClock() })
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

it('looks once more after something came due while it was not to ask, though nobody says so again', async () => {
  const asked = vi.fn(() => Promise.resolve(['none', 1]))
  const duties = dutiesOf({ requests: { run: asked } })
  duties.serve()
  duties.look()
  await vi.advanceTimersByTimeAsync(0)

  for (let claims = 0; claims < 3; claims++) duties.look()
  await vi.advanceTimersByTimeAsync(500)
  const soon = asked.mock.calls.length
  await vi.advanceTimersByTimeAsync(60_000)

  expect([soon, asked.mock.calls.length]).toEqual([1, 2])
  await duties.close()
})
