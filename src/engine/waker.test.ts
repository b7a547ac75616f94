import { afterAll, afterEach, beforeAll, expect, it } from 'vitest'
import { openRedis, type Redis } from '../store/redis.ts'
import { startRedis, type TestRedis } from '../testing/redis-server.ts'
import { type Sleeper, Waker } from './waker.ts'

const HEARTBEAT_MS = 150

let server: TestRedis
let redis: Redis
let waker: Waker
beforeAll(async () => {
  server = await startRedis()
  redis = openRedis({ redis: { path: server.path } })
  waker = new Waker(redis, { log: () => {}, heartbeatMs: HEARTBEAT_MS })
})
afterEach(() => waker.close())
afterAll(async () => {
  await redis.close()
  await server.stop()
})

it('gives every sleeper its heartbeat, however often another one is woken', async () => {
  const heard: (string | undefined)[] = []
  let isOver = false
  // Woken again as soon as it is: the read never waits for long.
  const busy: Sleeper = {
    wakeKey: 'wake:busy',
    onWake: (what) => {
      heard.push(what)
      if (!isOver && what !== undefined) void redis.call('RPUSH', 'wake:busy', 'work').catch(() => {})
    },
  }
  const heartbeats = new Promise<void>((resolve) => {
    let beats = 0
    waker.add({
      wakeKey: 'wake:quiet',
      onWake: (what) => {
        if (what === undefined && ++beats === 3) resolve()
      },
    })
  })
  waker.add(busy)

  await redis.call('RPUSH', 'wake:busy', 'work')
  await heartbeats
  isOver = true

  expect(heard.filter((what) => what === 'work').length).toBeGreaterThan(3)
})
