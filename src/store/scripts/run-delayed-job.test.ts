import { expect, it } from 'vitest'
import { record } from '../../../test/support/script-store/script-jobs.ts'
import { useScriptStore } from '../../../test/support/script-store/use-script-store.ts'
import { runDelayedJob } from './run-delayed-job.ts'

const store = useScriptStore()

const KEY = 'normal:default:01000000000:a'

function run(jobKey = KEY) {
  return runDelayedJob(store.requests(), { jobKey, tenant: '', action: '', digest: '' }, store.nowUs)
}

async function submitLater(): Promise<void> {
  await store.submit('a', 0, { kind: 'later', entries: ['+60000000', '', record(1)] })
}

it('makes a delayed job due, and the next claim runs it', async () => {
  await submitLater()

  const { reply, changes } = await store.changesOf(() => run())

  expect(reply).toBe('due')
  expect(changes).toEqual({ delayed: { [KEY]: 1_000_000_000 } })
  expect((await store.claim(1)).jobs[0]).toBe(KEY)
})

it('changes nothing of a job that is not delayed, and says how it stands', async () => {
  await store.submit('a', 1)

  const { reply, changes } = await store.changesOf(() => run('normal:default:1000000000:a'))

  expect(reply).toBe('waiting')
  expect(changes).toEqual({})
})

it('wakes an idle client', async () => {
  await submitLater()
  await store.claim(1, { idleForMs: 60_000 }, 'sleeper')

  const { changes } = await store.changesOf(() => run())

  expect(changes).toMatchObject({ idle: null, 'wake:sleeper': ['work'] })
})

it('knows nothing of a job that never was, also out of memory', async () => {
  expect(await store.outOfMemory(() => run())).toBe('unknown')
})

it('changes nothing in a store that does not know the queue', async () => {
  await store.empty()

  await expect(run()).rejects.toThrow('unregistered')
  expect(await store.dump()).toEqual({})
})
