import { expect, it } from 'vitest'
import { Trial } from './trial.ts'

it('a trial that cannot start ends the servers it was given', async () => {
  let stops = 0
  const topology = {
    redis: 'no address',
    masters: async () => [],
    stop: async () => {
      stops += 1
    },
  }

  await expect(Trial.start({ topology, upstream: true })).rejects.toThrow('redis')

  expect(stops).toBe(1)
})
