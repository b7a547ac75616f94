import { afterAll, afterEach, beforeAll, beforeEach, expect, it } from 'vitest'
import { ScriptStore } from '../../testing/script-store.ts'
import { settleDuty } from './settle-duty.ts'
import { takeDuty } from './take-duty.ts'

let store: ScriptStore

beforeAll(async () => {
  store = await ScriptStore.start()
})
beforeEach(() => store.begin())
afterEach(async () => expect(await store.keysMetTooLate()).toEqual([]))
afterAll(() => store.stop())

function take(client = 'me') {
  return takeDuty(store.requests(client), { leaseMs: 30_000, nowUs: store.nowUs })
}

async function endWithWebhook(name: string): Promise<void> {
  await store.openAction(name, {}, { webhook: '{}' })
  await store.sealAction(name)
}

it('leases the duty that is due first', async () => {
  await endWithWebhook('mail')
  store.now += 1
  await endWithWebhook('post')

  const { reply, changes } = await store.changesOf(() => take())

  expect(reply).toEqual({
    id: 'webhook:a:mail',
    kind: 'webhook',
    tenant: 'a',
    name: 'mail',
    fence: '1030000001',
    tries: 0,
  })
  expect(changes).toEqual({ duties: { 'webhook:a:mail': 1_030_000_001 } })
})

it('gives a duty to one at a time, and to another when the lease has run out', async () => {
  await endWithWebhook('mail')
  await take()

  expect(await take('other')).toBeUndefined()
  store.now += 30_000_000
  expect(await take('other')).toMatchObject({ id: 'webhook:a:mail', fence: '1060000000' })
})

it('takes none before it is due', async () => {
  await store.openAction('mail', { sealTimeoutMs: 1_000 })

  expect(await take()).toBeUndefined()
  store.now += 1_000_000
  expect(await take()).toMatchObject({ kind: 'seal', tenant: 'a', name: 'mail' })
})

it('says how often a duty was tried in vain', async () => {
  await endWithWebhook('mail')
  const taken = await take()
  await settleDuty(store.requests(), taken ?? { id: '', fence: '' }, { outcome: 'again', afterMs: 500 }, store.nowUs)
  store.now += 500_000

  expect(await take()).toMatchObject({ id: 'webhook:a:mail', tries: 1 })
})

it('is told to whoever claims that a duty is due', async () => {
  expect(await store.claim(1)).toMatchObject({ hasDuties: false })
  await endWithWebhook('mail')

  expect(await store.claim(1)).toMatchObject({ hasDuties: true })
  await take()
  expect(await store.claim(1, { idleForMs: 1_000 })).toMatchObject({ hasDuties: false, waitMs: 30_000 })
})

it('changes nothing in a store that does not know the queue', async () => {
  await store.empty()

  await expect(take()).rejects.toThrow('unregistered')
  expect(await store.dump()).toEqual({})
})

it('runs while Redis is out of memory', async () => {
  await endWithWebhook('mail')

  expect(await store.outOfMemory(() => take())).toMatchObject({ kind: 'webhook' })
})
