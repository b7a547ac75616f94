import { expect, it } from 'vitest'
import { Scenario } from './scenario.ts'

it('a scenario that cannot start ends the servers it was given', async () => {
  let stops = 0
  const topology = {
    redis: 'no address',
    masters: async () => [],
    stop: async () => {
      stops += 1
    },
  }

  await expect(Scenario.start({ topology, upstream: true })).rejects.toThrow('redis')

  expect(stops).toBe(1)
})
