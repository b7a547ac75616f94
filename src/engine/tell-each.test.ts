import { expect, it } from 'vitest'
import { StoreUnavailableError } from '../errors.ts'
import { placeOfKey } from '../store/job-place.ts'
import type { FinishedJob } from '../store/scripts/finish-and-claim.ts'
import { tellEach } from './tell-each.ts'

const away = new StoreUnavailableError({ reason: 'test', outcome: 'not-sent' })

function jobs(...keys: string[]): FinishedJob[] {
  return keys.map((jobKey) => ({
    ...{ fence: '7', standing: 'normal', jobKey },
    place: placeOfKey(jobKey),
    finish: { outcome: 'succeeded' },
  }))
}

/** A store that fails as it is told to, and remembers what it was told of. */
function storeThat(answer: (keys: readonly string[]) => unknown) {
  const told: string[] = []
  const untellable: string[] = []
  return {
    told,
    untellable,
    tell: async (finished: readonly FinishedJob[]) => {
      const keys = finished.map(({ jobKey }) => jobKey)
      const error = answer(keys)
      if (error) throw error
      told.push(...keys)
    },
    onUntellable: ({ jobKey }: FinishedJob) => untellable.push(jobKey),
  }
}

it('tells of all but the one that cannot be told of', async () => {
  const store = storeThat((keys) => keys.includes('b') && new TypeError('not a number'))

  expect(await tellEach(jobs('a', 'b', 'c'), store)).toEqual([])

  expect(store).toMatchObject({ told: ['a', 'c'], untellable: ['b'] })
})

it('keeps all of them while the store takes nothing at all', async () => {
  const store = storeThat(() => new Error('NOPERM'))

  expect(await tellEach(jobs('a', 'b'), store)).toEqual(jobs('a', 'b'))

  expect(store).toMatchObject({ told: [], untellable: [] })
})

it('keeps those it has not come to when the store goes away', async () => {
  const store = storeThat((keys) => keys.includes('b') && away)

  expect(await tellEach(jobs('a', 'b', 'c'), store)).toEqual(jobs('b', 'c'))

  expect(store).toMatchObject({ told: ['a'], untellable: [] })
})
