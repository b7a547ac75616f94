import { expect, it } from 'vitest'
import { record } from '../../../test/support/script-store/script-jobs.ts'
import { useScriptStore } from '../../../test/support/script-store/use-script-store.ts'
import { changeSchedule } from './change-schedule.ts'
import { readSchedules, type StoredSchedule } from './read-schedules.ts'
import { setSchedule } from './set-schedule.ts'
import { takeSchedules } from './take-schedules.ts'
import { type Tick, tickSchedules } from './tick-schedules.ts'

const store = useScriptStore()

/** A schedule that is due at this moment. */
async function due(name = 'nightly'): Promise<StoredSchedule> {
  await setSchedule(
    store.requests('maker'),
    { name, definition: '{}', dueUs: store.nowUs, onlyIfAbsent: false },
    store.nowUs,
  )
  const [found] = (await readSchedules(store.requests(), [name])).schedules
  return found as StoredSchedule
}

/** One tick: its job, and a minute until the next. */
function tickOf(schedule: StoredSchedule, tick: Partial<Tick> = {}): Tick {
  const nextUs = String(Number(schedule.dueUs) + 60_000_000)
  const jobs = [jobOf(schedule, schedule.dueUs)]
  return { schedule, nextUs, missed: 0, tenant: 'a', level: 'normal', lane: 'default', jobs, ...tick }
}

function jobOf({ name }: StoredSchedule, tickUs: string): Tick['jobs'][number] {
  return { tickUs, digest: Buffer.from(`${name}${tickUs}`).toString('hex').padStart(20, '0'), record: record(name) }
}

function tick(ticks: readonly Tick[], client = 'me') {
  return tickSchedules(store.requests(client), ticks, { leaseMs: 2_000, nowUs: store.nowUs })
}

it('makes the job of a tick and moves the schedule on, in one step', async () => {
  const schedule = await due()

  const { reply, changes } = await store.changesOf(() => tick([tickOf(schedule)]))

  expect(reply).toEqual({ fence: '', waitMs: 60_000, words: ['ticked'] })
  expect(changes).toEqual({
    'client:me': { '(expires)': true, '1': '1' },
    duties: { tick: 1_060_000_000 },
    ids: { '(expires)': true, '0': '1' },
    [await bucketOf(jobOf(schedule, schedule.dueUs).digest)]: expect.objectContaining({ '(expires)': true }),
    'lane:normal:default:a': ['|rs|SEND|||"nightly"'],
    queue: {
      'state.entry:normal': 1_000_000_002,
      'state.clock': 1_000_000_002,
      'state.waiting': 1,
      'state.weights:normal': 1_000,
      submitted: '1',
      ticks: '1',
      'state.active_since': 1_000_000_000,
      'state.slot': 200,
    },
    'ready:normal': { a: 1_000_000_002 },
    'schedule:nightly': { due: '1060000000', last: '1000000000', ticks: '1' },
    schedules: { nightly: 1_060_000_000 },
    'since:normal': { a: 1_000_000_000 },
    'tenant:a': expect.objectContaining({ 'state.waiting': 1 }),
    'ids:0:0:103': { '(expires)': true, '6e696768746c7931303030303030303030': 'normal:default:1000000001' },
  })
})

async function bucketOf(digest: string): Promise<string> {
  const keys = await store.client.keys('*:ids:*')
  for (const key of keys) if (await store.client.hexists(key, digest)) return key.slice('test:{q}:q:'.length)
  return 'no bucket'
}

it('makes one job for a tick that two processes work out', async () => {
  const schedule = await due()

  await tick([tickOf(schedule)])
  const { reply, changes } = await store.changesOf(() => tick([tickOf(schedule)], 'other'))

  expect(reply.words).toEqual(['changed'])
  expect(changes).toEqual({ 'client:other': { '(expires)': true, '1': '1' } })
})

it('makes none for a schedule that was changed, paused or removed meanwhile, even if one of its name is made anew', async () => {
  const schedules = [await due('changed'), await due('paused'), await due('removed'), await due('anew')]
  await setSchedule(store.requests(), {
    name: 'changed',
    definition: '{"a":1}',
    dueUs: store.nowUs,
    onlyIfAbsent: false,
    was: schedules[0],
  })
  await changeSchedule(store.requests(), { name: 'paused', verb: 'pause' })
  for (const name of ['removed', 'anew']) await changeSchedule(store.requests(), { name, verb: 'remove' })
  await due('anew')

  const { words } = await tick(schedules.map((schedule) => tickOf(schedule)))

  expect(words).toEqual(['changed', 'changed', 'changed', 'changed'])
  expect(await store.counts('submitted')).toEqual([0])
})

it('makes no second job under an id that is known, and moves on', async () => {
  const schedule = await due()
  const { digest, record: text } = jobOf(schedule, schedule.dueUs)
  await store.submit('a', 1, { kind: 'named', entries: [digest, text] })

  const { words } = await tick([tickOf(schedule)])

  expect(words).toEqual(['ticked'])
  expect(await store.counts('submitted', 'waiting')).toEqual([1, 1])
})

it('counts what was missed, and tells of it', async () => {
  const schedule = await due()

  const { changes } = await store.changesOf(() => tick([tickOf(schedule, { missed: 3, jobs: [] })]))

  expect(changes).toMatchObject({
    events: ['type schedule.missed schedule nightly tenant a missed 3'],
    queue: { ticks_missed: '3' },
    'schedule:nightly': { due: '1060000000', missed: '3' },
  })
  expect(await store.counts('submitted')).toEqual([0])
})

it('makes several jobs where none may be missed', async () => {
  const schedule = await due()
  const jobs = ['1000000000', '1010000000', '1020000000'].map((tickUs) => jobOf(schedule, tickUs))

  await tick([tickOf(schedule, { jobs, nextUs: '1030000000' })])

  const [found] = (await readSchedules(store.requests(), ['nightly'])).schedules
  expect(found).toMatchObject({ ticks: 3, lastUs: '1020000000', dueUs: '1030000000' })
  expect(await store.counts('submitted')).toEqual([3])
})

it('notes that jobs cost more than a permit, so that claims look at it', async () => {
  const schedule = await due()
  const job = { ...jobOf(schedule, schedule.dueUs), record: `*5;${record('nightly')}` }

  const { changes } = await store.changesOf(() => tick([tickOf(schedule, { jobs: [job] })]))

  expect(changes).toMatchObject({ queue: { costs: '1' }, 'lane:normal:default:a': ['*5;|rs|SEND|||"nightly"'] })
})

it('lets a tick wait for room, and others go on', async () => {
  await store.begin({ maxPendingPerTenant: 2 })
  await store.submit('a', 1)
  const [full, fits] = [await due('full'), await due('fits')]
  const jobs = ['1000000000', '1010000000'].map((tickUs) => jobOf(full, tickUs))

  const { words } = await tick([tickOf(full, { jobs, missed: 1 }), tickOf(fits, { tenant: 'b' })])

  const { schedules } = await readSchedules(store.requests(), ['full', 'fits'])
  expect(words).toEqual(['full', 'ticked'])
  expect(schedules[0]).toMatchObject({ dueUs: '1010000000', lastUs: '1000000000', ticks: 1, missed: 1 })
  expect(await store.dump()).toMatchObject({
    duties: { zset: { tick: 1_001_000_000 } },
    schedules: { zset: { full: 1_001_000_000, fits: 1_060_000_000 } },
  })
})

it('leaves what else is due to the caller for another lease', async () => {
  const first = await due('first')
  await due('second')
  await takeSchedules(store.requests(), { leaseMs: 2_000, most: 1, nowUs: store.nowUs })
  store.now += 1_000_000

  const { fence, waitMs } = await tick([tickOf(first)])
  const taken = await Promise.all(
    ['', fence].map((held) =>
      takeSchedules(store.requests(), { leaseMs: 2_000, most: 10, fence: held, nowUs: store.nowUs }),
    ),
  )

  expect([fence, waitMs]).toEqual(['1003000000', 0])
  expect(taken.map((found) => found?.schedules.map(({ name }) => name))).toEqual([undefined, ['second']])
})

it('rests a schedule that has no next tick', async () => {
  const schedule = await due()

  const { waitMs } = await tick([tickOf(schedule, { nextUs: '' })])

  expect(waitMs).toBeUndefined()
  expect(await store.dump()).toMatchObject({ schedules: { zset: { nightly: 9e15 } } })
  expect(await store.dump()).not.toHaveProperty('duties')
})

it('wakes a sleeper for the job', async () => {
  const schedule = await due()
  await store.claim(1, { idleForMs: 30_000 }, 'worker')

  const { changes } = await store.changesOf(() => tick([tickOf(schedule)]))

  expect(changes).toMatchObject({ 'wake:worker': ['work'], idle: null })
})

it('answers a repeated request from memory and changes nothing', async () => {
  const schedule = await due()
  const first = await tick([tickOf(schedule)], 'again')
  store.repeatFrom1('again')

  const { reply, changes } = await store.changesOf(() => tick([tickOf(schedule)], 'again'))

  expect(reply).toEqual(first)
  expect(changes).toEqual({})
})

it('changes nothing in a store that does not know the queue', async () => {
  const schedule = await due()
  await store.empty()

  await expect(tick([tickOf(schedule)])).rejects.toThrow('unregistered')
  expect(await store.dump()).toEqual({})
})

it('is refused while Redis is out of memory, and changes nothing', async () => {
  const schedule = await due()

  const { changes } = await store.changesOf(() =>
    expect(store.outOfMemory(() => tick([tickOf(schedule)]))).rejects.toMatchObject({
      code: 'SLUICE_STORE_OUT_OF_MEMORY',
    }),
  )

  expect(changes).toEqual({})
})
