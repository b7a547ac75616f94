import { expect, it } from 'vitest'
import { finishedAs } from '../../../test/support/script-store/script-jobs.ts'
import { useScriptStore } from '../../../test/support/script-store/use-script-store.ts'
import type { LetterPlace } from '../letter-place.ts'
import { type FoundLetters, readDeadLetters } from './read-dead-letters.ts'

const store = useScriptStore()

async function bury(tenant: string): Promise<void> {
  await store.submit(tenant, 1)
  const claim = await store.claim(1)
  await store.claim(0, {
    finished: finishedAs(claim, { outcome: 'dead', reason: 'discarded', error: '{"name":"E","message":"m"}' }),
  })
}

function read(count: number, after?: LetterPlace) {
  return readDeadLetters(store.redis, store.keys(), { after, count, nowUs: store.nowUs })
}

/** The tenants of a page, by the last letter of their keys. */
function tenantsOf({ rows }: FoundLetters) {
  return rows.map(({ place }) => place.jobKey.at(-1))
}

it('lists the newest first, page by page, and changes nothing', async () => {
  for (const tenant of ['a', 'b', 'c']) {
    await bury(tenant)
    store.now += 1_000_000
  }

  const { reply, changes } = await store.changesOf(async () => {
    const first = await read(2)
    const second = await read(2, first.rows[1]?.place)
    return [first, second, await read(2, second.rows[0]?.place)]
  })

  expect(reply.map((page) => [page.total, page.isMore, ...tenantsOf(page)])).toEqual([
    [3, true, 'c', 'b'],
    [3, false, 'a'],
    [3, false],
  ])
  expect(reply[1]?.rows[0]?.letter).toEqual({
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

it('leaves none out where some of the page before are gone, also of one moment and in the order of the set', async () => {
  for (const tenant of ['a', 'Z', 'b', 'B', 'c']) await bury(tenant)
  const all = (await read(5)).rows.map(({ place }) => place)

  const first = await read(2)
  for (const { place } of first.rows) await store.client.zrem(store.keys().dead, place.jobKey)
  const second = await read(5, first.rows[1]?.place)

  expect([...first.rows, ...second.rows].map(({ place }) => place)).toEqual(all)
  expect([second.total, second.isMore]).toEqual([3, false])
})

it('answers as many as a reply may hold, and one at least', async () => {
  for (const tenant of ['a', 'b', 'c', 'd']) {
    await bury(tenant)
    store.now += 1
  }
  for (const { place } of (await read(10)).rows) {
    const bytes = place.jobKey.endsWith('d') ? 2_000_000 : 600_000
    await store.client.hset(store.keys().deadJobs, place.jobKey, `1,failed\n\nrs\nSEND\n\n\n"${'x'.repeat(bytes)}"`)
  }

  const first = await read(10)
  const second = await read(10, first.rows[0]?.place)
  const third = await read(10, second.rows[1]?.place)

  expect([first, second, third].map((page) => [page.isMore, ...tenantsOf(page)])).toEqual([
    [true, 'd'],
    [true, 'c', 'b'],
    [false, 'a'],
  ])
})

it('shows what it cannot read, and passes over an instant without a letter', async () => {
  await bury('a')
  await bury('b')
  await store.client.hset(store.keys().deadJobs, 'normal:default:1000000000:a', 'nonsense')
  await store.client.hdel(store.keys().deadJobs, (await read(1)).rows[0]?.place.jobKey ?? '')

  const { total, rows } = await read(2)

  expect(total).toBe(2)
  expect(rows.map(({ letter }) => letter)).toMatchObject([
    undefined,
    {
      jobKey: 'normal:default:1000000000:a',
      diedAt: 1_000_000,
      reason: 'unreadable',
      record: { payload: '"nonsense"' },
    },
  ])
})

it('finds none in an empty store, out of memory or not', async () => {
  await store.empty()

  expect(await store.outOfMemory(() => read(10))).toEqual({ total: 0, rows: [], isMore: false })
})

it('leaves out those past their time, though nobody has taken them away yet', async () => {
  await store.begin({ keepDeadLettersMs: 3_600_000 })
  await bury('a')
  store.now += 1_000_000
  await bury('b')
  store.now += 3_599_000_000

  const page = await read(10)

  expect([page.total, page.isMore, ...tenantsOf(page)]).toEqual([1, false, 'b'])
  expect(await store.client.zcard(store.keys().dead)).toBe(2)
})
