import { expect, it } from 'vitest'
import { record } from '../../../test/support/script-store/script-jobs.ts'
import { useScriptStore } from '../../../test/support/script-store/use-script-store.ts'

const store = useScriptStore()

it('makes an action that is open and holds nothing', async () => {
  store.now += 5_000_000

  const { reply, changes } = await store.changesOf(() => store.openAction('mail'))

  expect(reply).toEqual({
    isNew: true,
    state: 'CREATED',
    isSealed: false,
    received: 0,
    level: 'normal',
    lane: '@mail',
    begunBy: '',
  })
  expect(changes).toEqual({
    'action:a:mail': {
      rules:
        '{"aggregates":false,"fail_fast":false,"has_webhook":false,"keep_results":false,"lane":"@mail","level":"normal","seal_timeout":0,"type":"SEND"}',
      'state.created': 1_005_000_000,
      'state.name': 'CREATED',
    },
    actions: {
      'a:mail': 1_005_000_000,
    },
    'actions:a': {
      mail: 1_005_000_000,
    },
    'client:producer': {
      '(expires)': true,
      '1': '1',
    },
    events: ['type action.created tenant a action mail'],
    queue: {
      'state.clock': 1_004_999_999,
    },
  })
})

it('finds the action of that name as it is, whatever the second caller wants of it', async () => {
  await store.openAction('mail')
  await store.submit('a', 2, { lane: '@mail' })

  const { reply, changes } = await store.changesOf(() => store.openAction('mail', { level: 'high', lane: '!@mail' }))

  expect(reply).toEqual({
    isNew: false,
    state: 'CREATED',
    isSealed: false,
    received: 2,
    level: 'normal',
    lane: '@mail',
    begunBy: '',
  })
  expect(changes).toEqual({ 'client:producer': { '3': '3' } })
})

it('counts what its producers have sent, known ids included, so that one without ids can go on after it', async () => {
  await store.openAction('mail')
  await store.submit('a', 0, { lane: '@mail', kind: 'named', entries: ['aa', record(1), 'aa', record(2)] })

  expect(await store.openAction('mail')).toMatchObject({ isNew: false, received: 2 })
})

it('keeps actions of one name apart by tenant', async () => {
  await store.openAction('mail')

  expect(await store.openAction('mail', {}, { tenant: 'b' })).toMatchObject({ isNew: true })
})

it('keeps the webhook beside the action, and says in its rules that there is one', async () => {
  const { changes } = await store.changesOf(() => store.openAction('mail', {}, { webhook: '{"url":"u"}' }))

  expect(changes['action:a:mail']).toMatchObject({ webhook: '{"url":"u"}' })
  expect(rulesIn(changes['action:a:mail'])).toMatchObject({ has_webhook: true })
})

it('keeps by whom the action was begun, and tells it to whoever comes after', async () => {
  const { reply, changes } = await store.changesOf(() => store.openAction('mail', {}, { begunBy: 'first' }))

  expect(reply).toMatchObject({ isNew: true, begunBy: 'first' })
  expect(changes['action:a:mail']).toMatchObject({ begun_by: 'first' })
  expect(await store.openAction('mail', {}, { begunBy: 'second' })).toMatchObject({ isNew: false, begunBy: 'first' })
})

it('keeps the results of an action whose type has an aggregate of its own', async () => {
  await store.client.hset('test:{q}:q:queue', 'aggregated:SEND', '1')

  const { changes } = await store.changesOf(() => store.openAction('mail'))

  expect(rulesIn(changes['action:a:mail'])).toMatchObject({ aggregates: true, keep_results: true })
})

it('has the action sealed some time after its producer was last heard of', async () => {
  const opened = await store.changesOf(() => store.openAction('mail', { sealTimeoutMs: 5_000 }))
  store.now += 1_000_000
  const heardOf = await store.changesOf(() => store.submit('a', 1, { lane: '@mail' }))

  expect(opened.changes).toMatchObject({ duties: { 'seal:a:mail': 1_005_000_000 } })
  expect(heardOf.changes).toMatchObject({ duties: { 'seal:a:mail': 1_006_000_000 } })
})

it('wakes an idle client to hold the alarm for the sealing, unless one holds an earlier one', async () => {
  await store.claim(1, { idleForMs: 60_000 }, 'sleeper')

  const first = await store.changesOf(() => store.openAction('mail', { sealTimeoutMs: 5_000 }))
  await store.claim(1, { idleForMs: 60_000 }, 'sleeper')
  const later = await store.changesOf(() => store.openAction('later', { sealTimeoutMs: 6_000 }))
  const sooner = await store.changesOf(() => store.openAction('sooner', { sealTimeoutMs: 4_000 }))

  expect(first.changes).toMatchObject({ idle: null, 'wake:sleeper': ['work'] })
  expect(later.changes).not.toHaveProperty('idle')
  expect(sooner.changes).toMatchObject({ idle: null })
})

it('tells no webhook of a new action of the end of a forgotten one', async () => {
  await store.openAction('mail', {}, { webhook: '{"url":"old"}' })
  await store.sealAction('mail')
  await store.client.del('test:{q}:q:action:a:mail')

  const { changes } = await store.changesOf(() => store.openAction('mail', {}, { webhook: '{"url":"new"}' }))

  expect(changes).toMatchObject({ duties: null, 'action:a:mail': { webhook: '{"url":"new"}' } })
})

it('takes actions off the lists whose records are gone, of all tenants', async () => {
  await store.openAction('old')
  await store.openAction('old', {}, { tenant: 'b' })
  await store.openAction('kept')
  await store.client.del('test:{q}:q:action:a:old', 'test:{q}:q:action:b:old')

  const { changes } = await store.changesOf(() => store.openAction('mail', {}, { tenant: 'c' }))

  expect(changes).toMatchObject({
    actions: { 'a:old': null, 'b:old': null, 'c:mail': 1_000_000_000 },
    'actions:a': { old: null },
    'actions:b': null,
    'actions:c': { mail: 1_000_000_000 },
  })
})

it('does so also behind actions that never end', async () => {
  for (let at = 0; at < 10; at++) await store.openAction(`open-${at}`)
  store.now += 1_000
  for (let at = 0; at < 30; at++) await store.openAction(`gone-${at}`)
  for (let at = 0; at < 30; at++) await store.client.del(`test:{q}:q:action:a:gone-${at}`)
  for (let at = 0; at < 20; at++) {
    store.now += 7_919
    await store.openAction(`new-${at}`)
  }

  const names = await store.client.zrange('test:{q}:q:actions', 0, '-1')

  expect(names.filter((name) => name.startsWith('a:gone'))).toEqual([])
  expect(await store.client.zcard('test:{q}:q:actions:a')).toBe(30)
})

it('answers a repeated request from memory and changes nothing', async () => {
  const first = await store.openAction('mail')
  store.repeatFrom1('producer')

  const { reply, changes } = await store.changesOf(() => store.openAction('mail'))

  expect(reply).toEqual(first)
  expect(changes).toEqual({})
})

it('changes nothing in a store that does not know the queue', async () => {
  await store.empty()

  await expect(store.openAction('mail')).rejects.toThrow('unregistered')
  expect(await store.dump()).toEqual({})
})

it('is refused while Redis is out of memory', async () => {
  await expect(store.outOfMemory(() => store.openAction('mail'))).rejects.toThrow()
})

function rulesIn(change: unknown): unknown {
  return JSON.parse((change as { rules: string }).rules)
}
