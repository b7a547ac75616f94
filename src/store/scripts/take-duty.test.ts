import { describe, expect, it } from 'vitest'
import { useScriptStore } from '../../../test/support/script-store/use-script-store.ts'
import { declareAggregates } from './declare-aggregates.ts'
import { settleDuty } from './settle-duty.ts'
import { type DutyTaker, takeDuty } from './take-duty.ts'

const store = useScriptStore()

const take = (client?: string) => store.takeDuty(client)

async function endWithWebhook(name: string): Promise<void> {
  await store.openAction(name, { type: 'POST' }, { webhook: '{}' })
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

describe('whoever cannot do all of it', () => {
  const unable: DutyTaker = { kinds: ['seal', 'webhook'], types: [], leaseMs: 30_000, unknownTypeMs: 3_600_000 }
  const takeAs = (taker: Partial<DutyTaker>) => takeDuty(store.requests('unable'), { ...unable, ...taker }, store.nowUs)

  async function endToAggregate(name: string): Promise<void> {
    await store.client.hset('test:{q}:q:queue', 'aggregated:SEND', '1')
    await store.openAction(name)
    await store.sealAction(name)
  }

  it('takes what comes after it', async () => {
    await endToAggregate('mail')
    store.now += 1
    await endWithWebhook('post')

    expect(await takeAs({})).toMatchObject({ word: 'taken', duty: { kind: 'webhook', name: 'post' } })
  })

  it('leaves it as it is, and says how much that is', async () => {
    await endToAggregate('mail')

    const { reply, changes } = await store.changesOf(() => takeAs({}))

    expect(reply).toEqual({ word: 'none', passed: 1 })
    expect(changes).toEqual({})
  })

  it('tells those who have the aggregate, and nobody whose time is over', async () => {
    await declareAggregates(store.requests('gone'), ['SEND'], 1_000, { nowUs: store.nowUs })
    await declareAggregates(store.requests('other'), ['POST'], 60_000, { nowUs: store.nowUs })
    await declareAggregates(store.requests('able'), ['POST', 'SEND'], 60_000, { nowUs: store.nowUs })
    await endToAggregate('mail')
    store.now += 1_000_000

    const { reply, changes } = await store.changesOf(() => takeAs({ kinds: [] }))

    expect(reply).toEqual({ word: 'none', passed: 1 })
    expect(changes).toEqual({ 'wake:able': ['duties'] })
  })

  it('tells nobody when it has the aggregate and only lacks a hand', async () => {
    await declareAggregates(store.requests('able'), ['SEND'], 60_000, { nowUs: store.nowUs })
    await endToAggregate('mail')

    const { reply, changes } = await store.changesOf(() => takeAs({ types: ['SEND'] }))

    expect(reply).toEqual({ word: 'none', passed: 1 })
    expect(changes).toEqual({})
  })

  it('gets an aggregate that nobody has had for as long as a type may be unknown', async () => {
    await declareAggregates(store.requests('able'), ['SEND'], 4_000_000, { nowUs: store.nowUs })
    await endToAggregate('mail')

    store.now += 3_600_000_000
    const whileSomebodyHasIt = await takeAs({ kinds: ['aggregate'] })
    store.now += 400_000_000
    const afterwards = await takeAs({ kinds: ['aggregate'] })

    expect(whileSomebodyHasIt).toEqual({ word: 'none', passed: 1 })
    expect(afterwards).toMatchObject({ word: 'taken', duty: { id: 'aggregate:a:mail' } })
  })

  it('puts a whole page of it aside for a second, to see what is behind it', async () => {
    for (let n = 0; n < 100; n++) await endWithWebhook(`post-${n}`)
    store.now += 1
    await store.openAction('mail', { sealTimeoutMs: 1_000 })
    store.now += 1_000_000

    expect(await takeAs({ kinds: ['seal'] })).toEqual({ word: 'again' })
    expect(await takeAs({ kinds: ['seal'] })).toMatchObject({ word: 'taken', duty: { kind: 'seal' } })
    expect(await takeAs({ kinds: ['webhook'] })).toEqual({ word: 'none', passed: 0 })
    store.now += 1_000_000
    expect(await takeAs({ kinds: ['webhook'] })).toMatchObject({ word: 'taken', duty: { kind: 'webhook' } })
  })
})
