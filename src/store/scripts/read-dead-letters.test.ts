import { expect, it } from 'vitest'
import { finishedAs } from '../../../test/support/script-store/script-jobs.ts'
import { useScriptStore } from '../../../test/support/script-store/use-script-store.ts'
import { readDeadLetters } from './read-dead-letters.ts'

const store = useScriptStore()

async function bury(tenant: string): Promise<void> {
  await store.submit(tenant, 1)
  const claim = await store.claim(1)
  await store.claim(0, {
    finished: finishedAs(claim, { outcome: 'dead', reason: 'discarded', error: '{"name":"E","message":"m"}' }),
  })
}

function read(from: number, count: number) {
  return readDeadLetters(store.redis, store.keys(), { from, count, nowUs: store.nowUs })
}

it('lists the newest first, page by page, and changes nothing', async () => {
  for (const tenant of ['a', 'b', 'c']) {
    await bury(tenant)
    store.now += 1_000_000
  }

  const { reply, changes } = await store.changesOf(async () => [await read(0, 2), await read(2, 2), await read(4, 2)])

  expect(reply.map(({ total, letters }) => [total, ...letters.map((letter) => letter.jobKey.at(-1))])).toEqual([
    [3, 'c', 'b'],
    [3, 'a'],
    [3],
  ])
  expect(reply[1]?.letters[0]).toEqual({
    diedAt: 1_000_000,
    jobKey: 'normal:default:1000000000:a',
    reason: 'discarded',
    record: {
      createdAt: 1000,
      givenId: undefined,
      cost: 1,
      history: {
        attempts: 1,
        error: {
          message: 'm',
          name: 'E',
        },
        reason: 'discarded',
        stalls: 0,
        throttles: 0,
        since: 0,
      },
      options: {},
      payload: '1',
      type: 'SEND',
    },
  })
  expect(changes).toEqual({})
})

it('leaves out what it cannot read', async () => {
  await bury('a')
  await store.client.hset(store.keys().deadJobs, 'normal:default:1000000000:a', 'nonsense')

  expect(await read(0, 2)).toEqual({ total: 1, letters: [] })
})

it('finds none in an empty store, out of memory or not', async () => {
  await store.empty()

  expect(await store.outOfMemory(() => read(0, 10))).toEqual({ total: 0, letters: [] })
})

it('leaves out those past their time, though nobody has taken them away yet', async () => {
  await store.begin({ keepDeadLettersMs: 3_600_000 })
  await bury('a')
  store.now += 1_000_000
  await bury('b')
  store.now += 3_599_000_000

  const { total, letters } = await read(0, 10)

  expect([total, ...letters.map(({ jobKey }) => jobKey.at(-1))]).toEqual([1, 'b'])
  expect(await store.client.zcard(store.keys().dead)).toBe(2)
})
