import { afterEach, beforeEach, expect, it, vi } from 'vitest'
import { newestAnswer } from './best-answer.ts'

beforeEach(() => {
  vi.useFakeTimers()
})
afterEach(() => {
  vi.useRealTimers()
})

const epochOf = (epoch: number) => epoch
const never = new Promise<number>(() => {})
const fails = () => Promise.reject(new Error('down'))

it('is the newest of enough', async () => {
  expect(await newestAnswer([Promise.resolve(1), Promise.resolve(3), never], { enough: 2, epochOf })).toBe(3)
})

it('is the newest of those that are there, when the others fail', async () => {
  expect(await newestAnswer([Promise.resolve(1), fails(), fails()], { enough: 3, epochOf })).toBe(1)
})

it('does not wait long for one that hangs', async () => {
  const answer = newestAnswer([never, Promise.resolve(2)], { enough: 2, epochOf })
  await vi.advanceTimersByTimeAsync(300)

  expect(await answer).toBe(2)
})

it('waits as long as it takes for the first', async () => {
  const late = new Promise<number>((resolve) => setTimeout(resolve, 5_000, 7))
  const answer = newestAnswer([never, late, fails()], { enough: 3, epochOf })
  await vi.advanceTimersByTimeAsync(5_300)

  expect(await answer).toBe(7)
})

it('is what the last one said when all fail, and an error when there is nobody', async () => {
  await expect(newestAnswer([fails(), fails()], { enough: 1, epochOf })).rejects.toThrow('down')
  await expect(newestAnswer<number>([], { enough: 1, epochOf })).rejects.toThrow('nobody to ask')
})
