import { expect, it } from 'vitest'
import { useScriptStore } from '../../../test/support/script-store/use-script-store.ts'
import { changeSchedule } from './change-schedule.ts'
import { readSchedulePage, type ScheduleCursor } from './read-schedule-page.ts'
import { setSchedule } from './set-schedule.ts'

const store = useScriptStore()

async function make(name: string, dueUs: string, definition = '{}'): Promise<void> {
  await setSchedule(store.requests('maker'), { name, definition, dueUs, onlyIfAbsent: false }, store.nowUs)
}

function list(page: { onlyInTime?: boolean; after?: ScheduleCursor; most?: number } = {}) {
  const { onlyInTime = false, after, most = 10 } = page
  return readSchedulePage(store.requests(), { withinMs: 60_000, onlyInTime, after, most }, store.nowUs)
}

it('lists by when they are due, paused ones last, and changes nothing', async () => {
  await make('paused', '1010000000')
  await changeSchedule(store.requests(), { name: 'paused', verb: 'pause' }, store.nowUs)
  await make('later', '1090000000')
  await make('sooner', '1030000000')

  const { reply, changes } = await store.changesOf(() => list())

  expect(reply).toMatchObject({ total: 3, inTime: 1, firstUs: '1030000000', cursor: undefined })
  expect(reply.schedules.map(({ name }) => name)).toEqual(['sooner', 'later', 'paused'])
  expect(changes).toEqual({})
})

it('lists only what is due in time, if asked to', async () => {
  await make('later', '1060000001')
  await make('sooner', '1060000000')

  const { schedules, total, inTime, cursor } = await list({ onlyInTime: true, most: 1 })

  expect([schedules.map(({ name }) => name), total, inTime, cursor]).toEqual([['sooner'], 2, 1, undefined])
})

it('goes on behind the last of a page, although many are due at one moment and that one is gone', async () => {
  for (const name of ['e', 'b', 'd', 'a', 'c']) await make(name, '1060000000')
  const first = await list({ most: 2 })
  await changeSchedule(store.requests(), { name: 'b', verb: 'remove' }, store.nowUs)

  const second = await list({ most: 2, after: first.cursor as ScheduleCursor })
  const third = await list({ most: 2, after: second.cursor as ScheduleCursor })

  expect([first, second, third].map((page) => page.schedules.map(({ name }) => name))).toEqual([
    ['a', 'b'],
    ['c', 'd'],
    ['e'],
  ])
  expect(third.cursor).toBeUndefined()
})

it('leaves out what it has but the name of, and goes on behind it', async () => {
  for (const name of ['a', 'b', 'c', 'd']) await make(name, '1060000000')
  await store.client.del('test:{q}:q:schedule:b', 'test:{q}:q:schedule:d')

  const first = await list({ most: 2 })
  const second = await list({ most: 2, after: first.cursor as ScheduleCursor })

  expect([first, second].map((page) => page.schedules.map(({ name }) => name))).toEqual([['a'], ['c']])
  expect([first.cursor, second.cursor]).toEqual([{ score: '1060000000', name: 'b' }, undefined])
})

it('holds no more than a reply may, but one at least', async () => {
  for (const name of ['a', 'b', 'c']) await make(name, '1060000000', name.repeat(600_000))

  const { schedules, cursor } = await list()

  expect(schedules.map(({ name }) => name)).toEqual(['a', 'b'])
  expect(cursor).toEqual({ score: '1060000000', name: 'b' })
})

it('is empty where there are none', async () => {
  expect(await list()).toEqual({ total: 0, inTime: 0, firstUs: '', schedules: [], cursor: undefined })
})

it('changes nothing in a store that does not know the queue', async () => {
  await store.empty()

  await expect(list()).rejects.toThrow('unregistered')
  expect(await store.dump()).toEqual({})
})

it('runs while Redis is out of memory', async () => {
  expect(await store.outOfMemory(() => list())).toMatchObject({ total: 0 })
})
