import { afterEach, beforeEach, expect, it, vi } from 'vitest'
import type { LogEntry } from './log.ts'
import { StoreWatch } from './store-watch.ts'

const log: LogEntry[] = []
const said = () => log.splice(0).map(({ level, event, message }) => `${level} ${event}: ${message}`)
let watch: StoreWatch

beforeEach(() => {
  vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout', 'performance'] })
  watch = new StoreWatch((entry) => log.push(entry))
})

afterEach(() => {
  vi.useRealTimers()
  log.length = 0
})

it('says once that the store is away, with the last reason, and once that it is back', () => {
  const connection = {}

  watch.lost(connection, 'the server closed the connection')
  vi.advanceTimersByTime(1_000)
  watch.lost(connection, 'connect ECONNREFUSED')
  vi.advanceTimersByTime(1_999)
  expect(said()).toEqual([])

  vi.advanceTimersByTime(1)
  watch.lost(connection, 'connect ECONNREFUSED')
  vi.advanceTimersByTime(17_000)
  expect(said()).toEqual([
    'warn store.away: Redis has been away for 3 s (connect ECONNREFUSED): jobs wait; those that run go on, and what has ended is told when it is back.',
  ])

  watch.made(connection)
  watch.made(connection)
  vi.advanceTimersByTime(10_000)
  expect(said()).toEqual(['info store.back: Redis is back after 20 s.'])
})

it('says nothing of a store that is back at once, and of one that was closed', () => {
  const [one, other] = [{}, {}]

  watch.lost(one, 'the server is at b:1 now')
  vi.advanceTimersByTime(2_000)
  watch.made(one)
  watch.lost(other, 'the server closed the connection')
  vi.advanceTimersByTime(2_000)
  watch.closed(other)
  vi.advanceTimersByTime(10_000)

  expect(said()).toEqual([])
})

it('of several servers the last one back counts', () => {
  const [one, other] = [{}, {}]

  watch.lost(one, 'gone')
  watch.lost(other, 'gone')
  vi.advanceTimersByTime(4_000)
  watch.made(one)
  expect(said()).toHaveLength(1)

  watch.made(other)
  expect(said()).toEqual(['info store.back: Redis is back after 4 s.'])
})
