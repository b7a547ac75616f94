import { expect, it } from 'vitest'
import { systemClock } from './clock.ts'

it('goes forward only', () => {
  const first = systemClock.now()

  expect(systemClock.now()).toBeGreaterThanOrEqual(first)
})

it('calls once, not before its time', async () => {
  const start = systemClock.now()

  const at = await new Promise<number>((resolve) => systemClock.setTimer(() => resolve(systemClock.now()), 20))

  // Node rounds timers to whole milliseconds.
  expect(at - start).toBeGreaterThanOrEqual(19)
})

it('does not call after it was cancelled', async () => {
  let called = false
  const cancel = systemClock.setTimer(() => {
    called = true
  }, 0)

  cancel()
  cancel()
  await new Promise<void>((resolve) => systemClock.setTimer(resolve, 5))

  expect(called).toBe(false)
})

it('does not take a wait of years for none', async () => {
  let called = false
  const cancel = systemClock.setTimer(() => {
    called = true
  }, 1e12)

  await new Promise<void>((resolve) => systemClock.setTimer(resolve, 5))
  cancel()

  expect(called).toBe(false)
})
