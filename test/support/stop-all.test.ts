import { expect, it } from 'vitest'
import { stopAll } from './stop-all.ts'

it('begins each stage when all of the one before has ended, also after some of it could not be ended, and throws what went wrong', async () => {
  const order: string[] = []
  const slow = async (name: string) => {
    await new Promise((resolve) => setImmediate(resolve))
    order.push(name)
  }
  const broken = (name: string) => Promise.reject(new Error(name))

  const stopped = stopAll(
    () => [broken('child'), slow('other child')],
    () => [broken('client')],
    () => [slow('server'), undefined],
  )

  await expect(stopped).rejects.toMatchObject({ errors: [new Error('child'), new Error('client')] })
  expect(order).toEqual(['other child', 'server'])
})

it('throws a single error as it is', async () => {
  const error = new Error('client')

  await expect(stopAll(() => [Promise.reject(error)])).rejects.toBe(error)
})
