import { expect, it } from 'vitest'
import { useScriptStore } from '../../../test/support/script-store/use-script-store.ts'
import { setSchedule } from './set-schedule.ts'
import { takeSchedules } from './take-schedules.ts'

const store = useScriptStore()

async function make(name: string, dueUs: string, definition = '{}'): Promise<void> {
  await setSchedule(store.requests('maker'), { name, definition, dueUs, onlyIfAbsent: false }, store.nowUs)
}

function take(options: { most?: number; client?: string } = {}) {
  const { most = 10, client } = options
  return takeSchedules(store.requests(client), { leaseMs: 2_000, most, nowUs: store.nowUs })
}

it('takes what is due, the first of it first, and keeps others off for a lease', async () => {
  await make('b', '1000000000')
  await make('a', '999000000')
  await make('later', '1000000001')

  const { reply, changes } = await store.changesOf(() => take())
  const other = await take({ client: 'other' })
  store.now += 2_000_000
  const afterwards = await take({ client: 'other' })

  expect(reply?.nowUs).toBe('1000000000')
  expect(reply?.schedules.map(({ name }) => name)).toEqual(['a', 'b'])
  expect(changes).toEqual({ duties: { tick: 1_002_000_000 } })
  expect(other).toBeUndefined()
  expect(afterwards?.schedules.map(({ name }) => name)).toEqual(['a', 'b', 'later'])
})

it('takes no more than asked for, nor than a reply may hold', async () => {
  for (const name of ['a', 'b', 'c']) await make(name, '1000000000', name.repeat(600_000))

  const few = await take({ most: 1 })
  store.now += 2_000_000
  const large = await take()

  expect([few, large].map((taken) => taken?.schedules.length)).toEqual([1, 2])
})

it('takes out what it has but the name of, and goes on with the others', async () => {
  for (const name of ['a', 'b', 'c']) await make(name, '1000000000')
  await store.client.del('test:{q}:q:schedule:a', 'test:{q}:q:schedule:c')

  const { reply, changes } = await store.changesOf(() => take())

  expect(reply?.schedules.map(({ name }) => name)).toEqual(['b'])
  expect(reply?.lost).toEqual(['a', 'c'])
  expect(changes).toEqual({ duties: { tick: 1_002_000_000 }, schedules: { a: null, c: null } })
})

it('has no duty any more when all that was due is lost', async () => {
  await make('a', '1000000000')
  await store.client.del('test:{q}:q:schedule:a')

  const { reply, changes } = await store.changesOf(() => take())

  expect(reply).toMatchObject({ schedules: [], lost: ['a'] })
  expect(changes).toEqual({ duties: null, schedules: null })
})

it('takes nothing before it is due', async () => {
  await make('later', '1000000001')

  const { reply, changes } = await store.changesOf(() => take())

  expect(reply).toBeUndefined()
  expect(changes).toEqual({})
})

it('is told to whoever claims that schedules are due, and when they will be', async () => {
  await make('later', '1005000000')

  const before = await store.claim(1, { idleForMs: 30_000 })
  store.now += 5_000_000
  const after = await store.claim(1, { idleForMs: 30_000 })

  expect(before).toMatchObject({ hasDuties: false, hasTicks: false, waitMs: 5_000, holdsAlarm: true })
  expect(after).toMatchObject({ hasDuties: false, hasTicks: true })
})

it('leaves other duties to those who do them, and these leave ticks', async () => {
  await make('due', '999000000')
  await store.openAction('mail', {}, { webhook: '{}' })
  await store.sealAction('mail')

  const duty = await store.takeDuty()
  const none = await store.takeDuty()

  expect([duty?.kind, none]).toEqual(['webhook', undefined])
  expect((await take())?.schedules).toHaveLength(1)
})

it('changes nothing in a store that does not know the queue', async () => {
  await store.empty()

  await expect(take()).rejects.toThrow('unregistered')
  expect(await store.dump()).toEqual({})
})

it('runs while Redis is out of memory', async () => {
  await make('due', '1000000000')

  expect((await store.outOfMemory(() => take()))?.schedules).toHaveLength(1)
})
