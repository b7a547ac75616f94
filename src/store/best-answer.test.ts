import { afterEach, beforeEach, expect, it, vi } from 'vitest'
import { answersOf } from './best-answer.ts'

beforeEach(() => {
  vi.useFakeTimers()
})
afterEach(() => {
  vi.useRealTimers()
})

const never = new Promise<number>(() => {})
const fails = () => Promise.reject(new Error('down'))

it('are those that came first, when they are enough', async () => {
  expect(await answersOf([Promise.resolve(1), Promise.resolve(3), never], { enough: 2 })).toEqual([1, 3])
})

it('are those that are there, when the others fail', async () => {
  expect(await answersOf([Promise.resolve(1), fails(), fails()], { enough: 3 })).toEqual([1])
})

it('do not wait long for one that hangs', async () => {
  const answer = answersOf([never, Promise.resolve(2)], { enough: 2 })
  await vi.advanceTimersByTimeAsync(300)

  expect(await answer).toEqual([2])
})

it('wait as long as it takes for the first', async () => {
  const late = new Promise<number>((resolve) => setTimeout(resolve, 5_000, 7))
  const answer = answersOf([never, late, fails()], { enough: 3 })
  await vi.advanceTimersByTimeAsync(5_300)

  expect(await answer).toEqual([7])
})

it('are what the last one said when all fail, and an error when there is nobody', async () => {
  await expect(answersOf([fails(), fails()], { enough: 1 })).rejects.toThrow('down')
  await expect(answersOf<number>([], { enough: 1 })).rejects.toThrow('nobody to ask')
})
