import { expect, it } from 'vitest'
import { record } from '../../../test/support/script-store/script-jobs.ts'
import { useScriptStore } from '../../../test/support/script-store/use-script-store.ts'
import { type DelayedFilter, runDelayedJobs } from './run-delayed-jobs.ts'

const store = useScriptStore()

const any: DelayedFilter = { tenant: '', type: '', action: '', reason: '' }

function run(filter: Partial<DelayedFilter> = {}) {
  return runDelayedJobs(store.requests(), {
    cursor: '0',
    looks: 100,
    filter: { ...any, ...filter },
    nowUs: store.nowUs,
  })
}

/** One that was submitted for later, and one that is to be tried again. */
async function fill(): Promise<void> {
  await store.submit('a', 0, { kind: 'later', entries: ['+60000000', '', record(1)] })
  await store.submit('b', 1)
  const claim = await store.claim(1, {}, 'worker')
  await store.finish(claim, { outcome: 'retry', delayMs: 60_000, error: '{}' }, 'worker')
}

it('makes delayed jobs due, and nothing else', async () => {
  await fill()

  const { reply, changes } = await store.changesOf(() => run())

  expect(reply).toEqual({ cursor: undefined, looked: 2, due: 2 })
  expect(changes).toEqual({
    delayed: { 'normal:default:01000000000:a': 1_000_000_000, 'normal:default:1000000001:b': 1_000_000_000 },
  })
})

it.each([
  ['tenant', { tenant: 'a' }, 1],
  ['type', { type: 'SEND' }, 2],
  ['another type', { type: 'OTHER' }, 0],
  ['reason', { reason: 'retry' }, 1],
  ['schedule', { reason: 'scheduled' }, 1],
  ['action', { action: 'x' }, 0],
] as const)('makes those of a %s due', async (_, filter, due) => {
  await fill()

  expect(await run(filter)).toMatchObject({ due })
})

it('counts none that is due already', async () => {
  await fill()
  await run()

  expect(await run()).toEqual({ cursor: undefined, looked: 2, due: 0 })
})

it('leaves what an action has dropped with its end', async () => {
  await store.openAction('x')
  await store.submit('a', 0, { lane: '@x', kind: 'later', entries: ['+60000000', '', record(1)] })
  await store.cancelAction('x')

  expect(await run()).toMatchObject({ looked: 1, due: 0 })
})

it('wakes an idle client', async () => {
  await fill()
  await store.claim(1, { idleForMs: 60_000 }, 'sleeper')

  const { changes } = await store.changesOf(() => run())

  expect(changes).toMatchObject({ idle: null, 'wake:sleeper': ['work'] })
})

it('runs while Redis is out of memory', async () => {
  await fill()

  expect(await store.outOfMemory(() => run())).toMatchObject({ due: 2 })
})

it('changes nothing in a store that does not know the queue', async () => {
  await store.empty()

  await expect(run()).rejects.toThrow('unregistered')
  expect(await store.dump()).toEqual({})
})
