import { expect, it } from 'vitest'
import { jobsOf } from '../../../test/support/script-store/script-jobs.ts'
import { useScriptStore } from '../../../test/support/script-store/use-script-store.ts'
import { pauseQueue } from './pause-queue.ts'

const store = useScriptStore()

function pause(isPaused: boolean, level?: 'high' | 'normal' | 'low') {
  return pauseQueue(store.requests(), { isPaused, level, nowUs: store.nowUs })
}

it('starts no job of a paused queue, and all of them after it is resumed', async () => {
  await store.submit('a', 1)

  const paused = await store.changesOf(() => pause(true))
  const claim = await store.claim(1)
  store.now += 5_000
  const resumed = await store.changesOf(() => pause(false))

  expect(paused.changes).toEqual({ queue: { 'pauses.paused': 1_000_000_000 } })
  expect(claim.jobs).toEqual([])
  expect(resumed.changes).toEqual({ queue: { 'pauses.paused': null, 'pauses.resumed': 1_000_005_000 } })
  expect(jobsOf(await store.claim(1))).toHaveLength(1)
})

it('pauses one level, and the others go on', async () => {
  await store.submit('a', 1, { level: 'high' })
  await store.submit('b', 1, { level: 'low' })

  const { changes } = await store.changesOf(() => pause(true, 'high'))

  expect(changes).toEqual({ queue: { 'pauses.paused:high': 1_000_000_000 } })
  expect(jobsOf(await store.claim(5))).toMatchObject([{ standing: 'low' }])
})

it('keeps the instant of the first pause, and of the first resumption', async () => {
  await pause(true)
  store.now += 5_000
  const paused = await store.changesOf(() => pause(true))
  await pause(false)
  store.now += 5_000
  const resumed = await store.changesOf(() => pause(false))

  expect(paused.changes).toEqual({})
  expect(resumed.changes).toEqual({})
})

it('wakes an idle client when it is resumed', async () => {
  await pause(true)
  await store.claim(1, { idleForMs: 60_000 }, 'sleeper')

  const { changes } = await store.changesOf(() => pause(false))

  expect(changes).toMatchObject({ idle: null, 'wake:sleeper': ['work'] })
})

it('changes nothing in a store that does not know the queue', async () => {
  await store.empty()

  await expect(pause(true)).rejects.toThrow('unregistered')
  expect(await store.dump()).toEqual({})
})

it('runs while Redis is out of memory', async () => {
  await store.submit('a', 1)

  await store.outOfMemory(() => pause(true))

  expect((await store.claim(1)).jobs).toEqual([])
})
