import { expect, it, vi } from 'vitest'
import { manualClock } from './manual-clock.ts'
import type { TestRedis } from './redis-server.ts'
import { startSluice } from './start-sluice.ts'

const servers = vi.hoisted<TestRedis[]>(() => [])
vi.mock('./redis-server.ts', async (original) => {
  const { startRedis } = await original<typeof import('./redis-server.ts')>()
  return {
    startRedis: async () => {
      const server = await startRedis()
      servers.push(server)
      return server
    },
  }
})

it('leaves no server behind when its options are wrong', async () => {
  await expect(startSluice({ prefix: 'a b' })).rejects.toThrow(/prefix must be letters/)

  expect(servers.at(-1)?.isRunning).toBe(false)
})

it('stops its server also when what was to end did not', async () => {
  const clock = manualClock()
  const { close, redis } = await startSluice({ clock })
  vi.spyOn(clock, 'runUntil').mockRejectedValue(new Error('did not happen'))

  await expect(close()).rejects.toThrow('did not happen')

  expect(redis.isRunning).toBe(false)
})
