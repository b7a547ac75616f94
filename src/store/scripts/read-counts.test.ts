import { expect, it } from 'vitest'
import { useScriptStore } from '../../../test/support/script-store/use-script-store.ts'
import { readAllCounts, readCounts } from './read-counts.ts'

const store = useScriptStore()

function read() {
  return readCounts(store.requests(), store.nowUs)
}

it('counts jobs by where they are and by what became of them, and changes nothing', async () => {
  await store.submit('a', 5)
  await store.finish(await store.claim(1), { outcome: 'succeeded' })
  await store.finish(await store.claim(1), { outcome: 'retry', delayMs: 1_000, error: '{}' })
  await store.claim(1)

  const { reply, changes } = await store.changesOf(() => read())

  expect(reply).toEqual({
    canceled: 0,
    claimed: 3,
    deadLettersDiscarded: 0,
    deadLettersExpired: 0,
    deadLettersRetried: 0,
    delayed: 1,
    failed: 0,
    parked: 0,
    promoted: 0,
    released: 0,
    retried: 1,
    returned: 0,
    running: 1,
    stalled: 0,
    submitted: 5,
    succeeded: 1,
    throttled: 0,
    ticks: 0,
    ticksMissed: 0,
    audits: 0,
    differences: 0,
    unknownType: 0,
    unparked: 0,
    waiting: 2,
  })
  expect(changes).toEqual({})
})

it('counts what each limit has granted, and denied by reason', async () => {
  await store.begin({ limits: { queue: { kind: 'concurrency', max: 9 }, tenant: { kind: 'concurrency', max: 1 } } })
  await store.submit('a', 2)
  await store.claim(5)

  const { ofLimits } = await readAllCounts(store.requests(), store.nowUs)

  expect(new Set(ofLimits)).toEqual(
    new Set([
      { scope: 'queue', limit: 'queue', reason: undefined, count: 1 },
      { scope: 'tenant', limit: 'tenant', reason: undefined, count: 1 },
      { scope: 'tenant', limit: 'tenant', reason: 'concurrency', count: 1 },
    ]),
  )
})

it('counts how long jobs wait that were pushed back without a word of when to come again', async () => {
  await store.submit('a', 12)
  await store.finish(await store.claim(1), { outcome: 'throttled', delayMs: undefined })
  await store.finish(await store.claim(1), { outcome: 'throttled', delayMs: 500 })
  await store.finish(await store.claim(10), { outcome: 'throttled', delayMs: undefined })

  const { backoffs } = await readAllCounts(store.requests(), store.nowUs)

  expect(backoffs.bounds).toEqual([1, 2, 3, 5, 10, 20, 30, 60, 119, 300, 900, 3_600])
  // The first with eleven waiting behind it, the last ten with none.
  expect(backoffs.cumulated()).toEqual([10, 10, 10, 10, 10, 11, 11, 11, 11, 11, 11, 11, 11])
  expect(backoffs.sum).toBe(22)
})

it('changes nothing in a store that does not know the queue', async () => {
  await store.empty()

  await expect(read()).rejects.toThrow('unregistered')
  expect(await store.dump()).toEqual({})
})

it('runs while Redis is out of memory', async () => {
  expect(await store.outOfMemory(() => read())).toMatchObject({ waiting: 0, submitted: 0 })
})
