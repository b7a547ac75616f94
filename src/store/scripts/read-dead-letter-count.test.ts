import { expect, it } from 'vitest'
import { useScriptStore } from '../../../test/support/script-store/use-script-store.ts'
import type { LetterFilter, LetterSearch } from '../letter-search.ts'
import { readDeadLetterCount } from './read-dead-letter-count.ts'

const store = useScriptStore()

const start = { died: '0', jobKey: '' }
const any: LetterFilter = { tenant: '', type: '', action: '', reason: '', error: '' }

async function bury(tenant: string, count: number): Promise<void> {
  await store.submit(tenant, count)
  const claim = await store.claim(count, {}, 'worker')
  await store.finish(claim, { outcome: 'dead', reason: 'failed', error: '{"message":"no"}' }, 'worker')
}

function count(search: Partial<LetterSearch> = {}) {
  const whole = { after: start, to: '', filter: any, looks: 100, most: 100, nowUs: store.nowUs, ...search }
  return readDeadLetterCount(store.requests(), whole)
}

it('counts those that fit and says how many there are, and changes nothing', async () => {
  await bury('a', 3)
  await bury('b', 1)

  const { reply, changes } = await store.changesOf(() => count({ filter: { ...any, tenant: 'a' } }))

  expect(reply).toEqual({ looked: 4, taken: 3, last: undefined, to: '1000000000', left: 4 })
  expect(changes).toEqual({})
})

it('goes on where it was, though all are still there', async () => {
  await bury('a', 5)

  const first = await count({ looks: 2 })
  const second = await count({ looks: 2, after: first.last ?? start })
  const last = await count({ looks: 2, after: second.last ?? start })

  expect([first, second, last].map(({ taken }) => taken)).toEqual([2, 2, 1])
  expect([second.last, last.last]).toEqual([{ died: '1000000000', jobKey: 'normal:default:1000000003:a' }, undefined])
})

it('counts none that is past its time', async () => {
  await store.begin({ keepDeadLettersMs: 3_600_000 })
  await bury('a', 1)
  store.now += 3_600_000_000

  expect(await count()).toMatchObject({ looked: 0, taken: 0, left: 0 })
})

it('knows nothing of a queue that is not registered', async () => {
  await store.empty()

  await expect(count()).rejects.toThrow('unregistered')
})
