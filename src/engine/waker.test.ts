import { afterAll, afterEach, beforeAll, beforeEach, expect, it } from 'vitest'
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
})
beforeEach(() => {
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

it('takes a sleeper off the list that it was added under, whatever its key is by then', async () => {
  const heard: string[] = []
  const moving = {
    wakeKey: 'wake:before',
    onWake: (what?: string) => what !== undefined && heard.push(`moving ${what}`),
  }
  waker.add(moving)
  moving.wakeKey = 'wake:after'

  waker.remove(moving)
  const other = new Promise<void>((resolve) => {
    waker.add({ wakeKey: 'wake:other', onWake: (what) => what === 'last' && resolve() })
  })
  await redis.call('RPUSH', 'wake:before', 'lost')
  await redis.call('RPUSH', 'wake:other', 'last')
  await other

  expect(heard).toEqual([])
  expect(await redis.call('LLEN', 'wake:before')).toBe(1)
})

it('wakes one that is added again under another key by that one alone', async () => {
  const heard: string[] = []
  const woken = new Promise<void>((resolve) => {
    const moving = {
      wakeKey: 'wake:from',
      onWake: (what?: string) => {
        if (what !== undefined) heard.push(what)
        if (what === 'there') resolve()
      },
    }
    waker.add(moving)
    moving.wakeKey = 'wake:to'
    waker.add(moving)
  })

  await redis.call('RPUSH', 'wake:to', 'there')
  await woken

  expect(heard).toEqual(['there'])
})

it('tells its sleepers how late a heartbeat comes from a server that stood still', async () => {
  const late = new Promise<number>((resolve) => {
    waker.add({ wakeKey: 'wake:late', onWake: () => {}, onLate: (ms) => ms > HEARTBEAT_MS && resolve(ms) })
  })

  await server.kill('SIGSTOP')
  // The silence itself is the event.
  await new Promise((resolve) => setTimeout(resolve, 4 * HEARTBEAT_MS))
  await server.kill('SIGCONT')

  expect(await late).toBeGreaterThan(HEARTBEAT_MS)
})
