import { expect, it } from 'vitest'
import { useScriptStore } from '../../../test/support/script-store/use-script-store.ts'
import { changeSettings } from './change-settings.ts'
import { pauseQueue } from './pause-queue.ts'
import { readSettings } from './read-settings.ts'

const store = useScriptStore({ quantum: 7, alpha: 5 })

function read() {
  return readSettings(store.requests(), store.nowUs)
}

it('reads what is declared with what was changed on top, and changes nothing', async () => {
  await changeSettings(store.requests(), { values: { alpha: -3 } }, store.nowUs)

  const { reply, changes } = await store.changesOf(() => read())

  expect(reply.values).toMatchObject({ quantum: 7, alpha: -3, max_wait: 60_000_000 })
  expect(reply.pausedSince).toBeUndefined()
  expect(reply.levelsPausedSince).toEqual({ high: undefined, normal: undefined, low: undefined })
  expect(changes).toEqual({})
})

it('says since when the queue and each level are paused', async () => {
  await pauseQueue(store.requests(), { isPaused: true, level: undefined, nowUs: store.nowUs })
  store.now += 1_000_000
  await pauseQueue(store.requests(), { isPaused: true, level: 'low', nowUs: store.nowUs })

  expect(await read()).toMatchObject({
    pausedSince: 1_000_000,
    levelsPausedSince: { high: undefined, normal: undefined, low: 1_001_000 },
  })
})

it('changes nothing in a store that does not know the queue', async () => {
  await store.empty()

  await expect(read()).rejects.toThrow('unregistered')
  expect(await store.dump()).toEqual({})
})

it('runs while Redis is out of memory', async () => {
  expect((await store.outOfMemory(() => read())).values.quantum).toBe(7)
})
