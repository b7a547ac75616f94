import { expect, it } from 'vitest'
import { useScriptStore } from '../../../test/support/script-store/use-script-store.ts'
import { declareAggregates } from './declare-aggregates.ts'

const store = useScriptStore()

function declare(client: string, types: readonly string[], forMs = 60_000) {
  return declareAggregates(store.requests(client), types, forMs, { nowUs: store.nowUs })
}

it('remembers who makes aggregates of which types, and that these types have one', async () => {
  const { reply, changes } = await store.changesOf(() => declare('me', ['SEND', 'A:B']))

  expect(reply).toBe(false)
  expect(changes).toEqual({
    queue: { 'aggregated:SEND': '1', 'aggregated:A:B': '1' },
    aggregators: { 'me:SEND': 1_060_000_000, 'me:A:B': 1_060_000_000, '(expires)': true },
  })
})

it('forgets whoever does so no longer, and whose time is over', async () => {
  await declare('gone', ['SEND'], 1_000)
  await declare('me', ['SEND'])
  await declare('other', ['SEND'])
  store.now += 1_000_000

  const { changes } = await store.changesOf(() => declare('me', ['SEND'], 0))

  expect(changes).toEqual({ aggregators: { 'gone:SEND': null, 'me:SEND': null } })
})

it('keeps those who declare theirs for longer, and more rarely, than others', async () => {
  await declare('rarely', ['SEND'], 600_000)

  await declare('often', ['SEND'], 60_000)

  expect(await store.client.pttl(store.keys().aggregators)).toBeGreaterThan(500_000)
})

it('says when a duty is due', async () => {
  await store.openAction('mail', {}, { webhook: '{}' })
  await store.sealAction('mail')

  expect(await declare('me', ['SEND'])).toBe(true)
})

it('changes nothing in a store that does not know the queue', async () => {
  await store.empty()

  await expect(declare('me', ['SEND'])).rejects.toThrow('unregistered')
  expect(await store.dump()).toEqual({})
})

it('runs while Redis is out of memory', async () => {
  expect(await store.outOfMemory(() => declare('me', ['SEND']))).toBe(false)
})
