import { expect, it } from 'vitest'
import { finishedAs } from '../../../test/support/script-store/script-jobs.ts'
import { useScriptStore } from '../../../test/support/script-store/use-script-store.ts'
import { takeAudit } from './take-audit.ts'

const store = useScriptStore()

function take(client: string, position = '') {
  return takeAudit(store.requests(client), { leaseMs: 10_000, everyMs: 60_000, position, nowUs: store.nowUs })
}

it('is of one process at a time', async () => {
  const { reply, changes } = await store.changesOf(() => take('one'))

  expect(reply).toMatchObject({ word: 'taken', position: '' })
  expect(changes).toMatchObject({ audit: { holder: 'one', until: '1010000000', since: '1000000000', position: '' } })
  expect(await take('two')).toEqual({ word: 'wait', waitMs: 10_000 })
})

it('is kept by whoever says how far it is, and goes on from there with another when that one is gone', async () => {
  await take('one')
  store.now += 5_000_000
  await take('one', 'keys 17')

  expect(await take('two')).toEqual({ word: 'wait', waitMs: 10_000 })
  store.now += 10_000_000
  expect(await take('two')).toMatchObject({ word: 'taken', position: 'keys 17' })
})

it('tells whoever was away for too long where the other is by now', async () => {
  await take('one', '')
  store.now += 11_000_000
  await take('two')
  await take('two', 'aside 3')

  expect(await take('one', 'keys 17')).toEqual({ word: 'wait', waitMs: 10_000 })
})

it('rests after a round, whoever asks, and counts it', async () => {
  await take('one')
  store.now += 20_000_000

  const { reply, changes } = await store.changesOf(() => take('one', 'end'))

  expect(reply).toEqual({ word: 'wait', waitMs: 40_000 })
  expect(changes).toMatchObject({ audit: { due: '1060000000', holder: null }, queue: { audits: '1' } })
  expect(await take('two')).toEqual({ word: 'wait', waitMs: 40_000 })
  store.now += 40_000_000
  expect(await take('two')).toMatchObject({ word: 'taken', position: '' })
})

it('waits no longer than a lease when the clock of the server was put back', async () => {
  await take('one')
  store.now -= 900_000_000

  expect(await take('two')).toEqual({ word: 'wait', waitMs: 10_000 })
})

it('runs while Redis is out of memory', async () => {
  expect(await store.outOfMemory(() => take('one'))).toMatchObject({ word: 'taken' })
})

it('changes nothing in a store that does not know the queue', async () => {
  await store.empty()

  await expect(take('one')).rejects.toThrow('unregistered')
  expect(await store.dump()).toEqual({})
})

it('takes dead letters away that are past their time, where no other job dies', async () => {
  await store.begin({ keepDeadLettersMs: 3_600_000 })
  await store.submit('a', 2)
  const claim = await store.claim(2)
  await store.claim(0, { finished: finishedAs(claim, { outcome: 'dead', reason: 'failed', error: '{}' }) })
  store.now += 3_600_000_000

  const { changes } = await store.changesOf(() => take('one'))

  expect(changes).toMatchObject({ dead: null, 'dead:jobs': null, queue: { dead_expired: '2' } })
})
