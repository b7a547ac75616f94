import { beforeEach, expect, it } from 'vitest'
import { useScriptStore } from '../../../test/support/script-store/use-script-store.ts'
import { changeSchedule } from './change-schedule.ts'
import { setSchedule } from './set-schedule.ts'

const store = useScriptStore()
beforeEach(async () => {
  const schedule = { name: 'nightly', definition: '{}', dueUs: '1060000000', onlyIfAbsent: false }
  await setSchedule(store.requests('maker'), schedule, store.nowUs)
})

function change(verb: 'remove' | 'pause' | 'resume', options: { name?: string; dueUs?: string; client?: string } = {}) {
  const { name = 'nightly', dueUs = '1120000000', client } = options
  return changeSchedule(store.requests(client), { name, verb, dueUs }, store.nowUs)
}

it('removes a schedule and all it has', async () => {
  const { reply, changes } = await store.changesOf(() => change('remove'))

  expect(reply).toBe('changed')
  expect(changes).toEqual({
    'client:me': { '(expires)': true, '1': '1' },
    duties: null,
    'schedule:nightly': null,
    schedules: null,
  })
})

it('pauses a schedule: it is not looked at any more', async () => {
  const { reply, changes } = await store.changesOf(() => change('pause'))

  expect(reply).toBe('changed')
  expect(changes).toEqual({
    'client:me': { '(expires)': true, '1': '1' },
    duties: null,
    queue: { 'state.clock': 1_000_000_001 },
    'schedule:nightly': { paused: '1000000000', revision: '1000000001' },
    schedules: { nightly: 9e15 },
  })
})

it('resumes a schedule with the tick that comes next', async () => {
  await change('pause')

  const { reply, changes } = await store.changesOf(() => change('resume'))

  expect(reply).toBe('changed')
  expect(changes).toEqual({
    'client:me': { '2': '2' },
    duties: { tick: 1_120_000_000 },
    queue: { 'state.clock': 1_000_000_002 },
    'schedule:nightly': { due: '1120000000', paused: null, revision: '1000000002' },
    schedules: { nightly: 1_120_000_000 },
  })
})

it('wakes a sleeper for a resumed schedule', async () => {
  await change('pause')
  await store.claim(1, { idleForMs: 30_000 }, 'worker')

  const { changes } = await store.changesOf(() => change('resume'))

  expect(changes).toMatchObject({ 'wake:worker': ['work'], idle: null })
})

it('changes nothing of a schedule that stands so, or is not there', async () => {
  const { reply, changes } = await store.changesOf(async () => [
    await change('resume'),
    await change('pause', { name: 'unheard' }),
    await change('remove', { name: 'unheard' }),
  ])

  expect(reply).toEqual(['unchanged', 'unknown', 'unknown'])
  expect(changes).toEqual({})
})

it('answers a repeated request from memory and changes nothing', async () => {
  await change('pause', { client: 'again' })
  await change('resume')
  store.repeatFrom1('again')

  const { reply, changes } = await store.changesOf(() => change('pause', { client: 'again' }))

  expect(reply).toBe('changed')
  expect(changes).toEqual({})
})

it('changes nothing in a store that does not know the queue', async () => {
  await store.empty()

  await expect(change('remove')).rejects.toThrow('unregistered')
  expect(await store.dump()).toEqual({})
})

it('runs while Redis is out of memory', async () => {
  expect(await store.outOfMemory(() => change('pause'))).toBe('changed')
})
