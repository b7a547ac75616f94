import { expect, it } from 'vitest'
import { useScriptStore } from '../../../test/support/script-store/use-script-store.ts'
import { changeSchedule } from './change-schedule.ts'
import { readSchedules } from './read-schedules.ts'
import { setSchedule } from './set-schedule.ts'

const store = useScriptStore()

function read(...names: readonly string[]) {
  return readSchedules(store.requests(), names, store.nowUs)
}

it('reads schedules in the order they were asked for, and changes nothing', async () => {
  for (const name of ['a', 'b']) {
    const schedule = { name, definition: `{"of":"${name}"}`, dueUs: '1060000000', onlyIfAbsent: false }
    await setSchedule(store.requests(), schedule, store.nowUs)
  }
  await changeSchedule(store.requests(), { name: 'a', verb: 'pause' }, store.nowUs)

  const { reply, changes } = await store.changesOf(() => read('b', 'unheard', 'a'))

  const common = { dueUs: '1060000000', lastUs: '', ticks: 0, missed: 0 }
  expect(reply).toEqual({
    nowUs: '1000000000',
    sinceUs: '1000000000',
    schedules: [
      { name: 'b', definition: '{"of":"b"}', revision: '1000000001', pausedUs: '', ...common },
      undefined,
      { name: 'a', definition: '{"of":"a"}', revision: '1000000002', pausedUs: '1000000000', ...common },
    ],
  })
  expect(changes).toEqual({})
})

it('changes nothing in a store that does not know the queue', async () => {
  await store.empty()

  await expect(read('a')).rejects.toThrow('unregistered')
  expect(await store.dump()).toEqual({})
})

it('runs while Redis is out of memory', async () => {
  expect(await store.outOfMemory(() => read('a'))).toMatchObject({ schedules: [undefined] })
})
