import { expect, it } from 'vitest'
import { useScriptStore } from '../../../test/support/script-store/use-script-store.ts'
import { changeSchedule } from './change-schedule.ts'
import { readSchedules, type StoredSchedule } from './read-schedules.ts'
import { type SetSchedule, setSchedule } from './set-schedule.ts'

const store = useScriptStore()

async function found(name: string): Promise<StoredSchedule | undefined> {
  return (await readSchedules(store.requests('reader'), [name])).schedules[0]
}

/** As a process does that has just read what is there, unless it is said what it found. */
async function set(
  name: string,
  dueUs: string,
  definition = '{}',
  options: { client?: string } & Partial<Pick<SetSchedule, 'onlyIfAbsent' | 'was' | 'missed'>> = {},
) {
  const { client, ...more } = options
  const schedule = { name, definition, dueUs, onlyIfAbsent: false, was: await found(name), ...more }
  return setSchedule(store.requests(client), schedule, store.nowUs)
}

it('makes a schedule, and a duty of the queue for when it is due', async () => {
  const { reply, changes } = await store.changesOf(() => set('nightly', '1060000000', '{"every":1}'))

  expect(reply).toEqual({ result: 'created', sinceUs: '1000000000' })
  expect(changes).toEqual({
    'client:me': { '(expires)': true, '1': '1' },
    duties: { tick: 1_060_000_000 },
    queue: { schedules_since: '1000000000', 'state.clock': 1_000_000_000 },
    'schedule:nightly': { definition: '{"every":1}', due: '1060000000', revision: '1000000000' },
    schedules: { nightly: 1_060_000_000 },
  })
})

it('has the duty due with the first of all schedules', async () => {
  await set('later', '1060000000')
  await set('sooner', '1030000000')

  expect(await store.dump()).toMatchObject({ duties: { zset: { tick: 1_030_000_000 } } })

  await set('sooner', '1090000000', '{"other":1}')

  expect(await store.dump()).toMatchObject({ duties: { zset: { tick: 1_060_000_000 } } })
})

it('changes nothing when it is told the same again, whoever tells it', async () => {
  await set('nightly', '1060000000')
  store.now += 1_000_000

  const { reply, changes } = await store.changesOf(() => set('nightly', '1061000000', '{}', { client: 'other' }))

  expect(reply).toEqual({ result: 'unchanged', sinceUs: '1000000000' })
  expect(changes).toEqual({})
})

it('replaces a definition at once, and keeps what was counted', async () => {
  await set('nightly', '1060000000')
  await store.client.hset('test:{q}:q:schedule:nightly', { ticks: 7, missed: 2, last: '1000000000' })

  const { reply, changes } = await store.changesOf(() => set('nightly', '1030000000', '{"other":1}'))

  expect(reply).toEqual({ result: 'changed', sinceUs: '1000000000' })
  expect(changes).toMatchObject({
    duties: { tick: 1_030_000_000 },
    'schedule:nightly': { definition: '{"other":1}', due: '1030000000', revision: '1000000001' },
    schedules: { nightly: 1_030_000_000 },
  })
})

it('counts ticks that were due and get no job, and tells of them', async () => {
  await set('nightly', '1000000000')

  const missed = { count: 3, tenant: 'a' }
  const { changes } = await store.changesOf(() => set('nightly', '1030000000', '{"other":1}', { missed }))

  expect(changes).toMatchObject({
    events: ['type schedule.missed schedule nightly tenant a missed 3'],
    queue: { ticks_missed: '3' },
    'schedule:nightly': { due: '1030000000', missed: '3' },
  })
})

it('changes nothing if the schedule does not stand as it was found', async () => {
  await set('nightly', '1060000000')
  const was = await found('nightly')
  const given = { onlyIfAbsent: false, missed: { count: 3, tenant: 'a' } }

  const { reply, changes } = await store.changesOf(async () => [
    await set('nightly', '1', '{"other":1}', { ...given, was: undefined }),
    await set('nightly', '1', '{"other":1}', { ...given, was: { revision: '5', dueUs: '1060000000' } }),
    await set('nightly', '1', '{"other":1}', { ...given, was: { revision: was?.revision ?? '', dueUs: '1000000000' } }),
    await set('unheard', '1', '{"other":1}', { ...given, was }),
  ])

  expect(reply).toEqual([undefined, undefined, undefined, undefined])
  expect(changes).toEqual({})
})

it('leaves one alone that is there, if asked to', async () => {
  await set('nightly', '1060000000')

  const { reply, changes } = await store.changesOf(() => set('nightly', '1', '{"old":1}', { onlyIfAbsent: true }))

  expect(reply).toEqual({ result: 'unchanged', sinceUs: '1000000000' })
  expect(changes).toEqual({})
})

it('lets a paused schedule stay paused', async () => {
  await set('nightly', '1060000000')
  await changeSchedule(store.requests(), { name: 'nightly', verb: 'pause' }, store.nowUs)

  await set('nightly', '1030000000', '{"other":1}')

  expect(await store.dump()).toMatchObject({ schedules: { zset: { nightly: 9e15 } } })
  expect(await store.dump()).not.toHaveProperty('duties')
})

it('wakes a sleeper that would sleep too long', async () => {
  await store.claim(1, { idleForMs: 30_000 }, 'worker')

  const { changes } = await store.changesOf(() => set('soon', '1001000000'))

  expect(changes).toMatchObject({ 'wake:worker': ['work'], idle: null })
})

it('lets sleepers sleep when one of them is awake before', async () => {
  await set('soon', '1001000000')
  await store.claim(1, { idleForMs: 30_000 }, 'worker')

  const { changes } = await store.changesOf(() => set('later', '1002000000'))

  expect(changes).not.toHaveProperty('wake:worker')
})

it('answers a repeated request from memory and changes nothing', async () => {
  await set('nightly', '1060000000', '{}', { client: 'again' })
  await set('nightly', '1070000000', '{"other":1}')
  store.repeatFrom1('again')

  const { reply, changes } = await store.changesOf(() => set('nightly', '1060000000', '{}', { client: 'again' }))

  expect(reply).toEqual({ result: 'created', sinceUs: '1000000000' })
  expect(changes).toEqual({})
})

it('changes nothing in a store that does not know the queue', async () => {
  await store.empty()

  await expect(set('nightly', '1')).rejects.toThrow('unregistered')
  expect(await store.dump()).toEqual({})
})

it('is refused while Redis is out of memory', async () => {
  await expect(store.outOfMemory(() => set('nightly', '1'))).rejects.toMatchObject({
    code: 'SLUICE_STORE_OUT_OF_MEMORY',
  })
})
