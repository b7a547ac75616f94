import { expect, it } from 'vitest'
import type { Clock } from '../../clock.ts'
import type { Requests } from '../../store/requests.ts'
import type { Waker } from '../waker.ts'
import { ActionWatcher } from './action-watcher.ts'

it('stays registered for as long as somebody follows, also where the clock runs ahead of the waker', async () => {
  const timers: (() => void)[] = []
  const clock: Clock = {
    now: () => 0,
    date: () => 0,
    setTimer: (fn) => {
      timers.push(fn)
      return () => void timers.splice(timers.indexOf(fn), 1)
    },
  }
  const watched: unknown[] = []
  const requests = {
    client: 'me',
    keys: { wake: 'wake:me' },
    run: (_script: unknown, args: () => { watchFor: number }) => {
      watched.push(args().watchFor)
      return Promise.resolve(['watched'])
    },
  } as unknown as Requests
  const waker = { add: () => {}, remove: () => {} } as unknown as Waker
  const watcher = new ActionWatcher({ queue: 'q', requests, waker, clock })
  const ring = () => {
    for (const fn of timers.splice(0)) fn()
  }

  const changes = await watcher.follow('a', 'mail')
  ring()
  ring()
  changes.close()

  expect(watched).toEqual([60_000_000, 60_000_000, 60_000_000, 0])
  expect(timers).toEqual([])
})
