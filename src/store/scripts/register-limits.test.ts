import { beforeEach, expect, it } from 'vitest'
import { useScriptStore } from '../../../test/support/script-store/use-script-store.ts'
import { type LimitDefinition, parseLimit } from '../../limits/definition.ts'
import { acquireShared } from './acquire-shared.ts'
import { changeLimit } from './change-limit.ts'
import { readSharedLimits } from './read-shared-limits.ts'
import { registerLimits } from './register-limits.ts'

const store = useScriptStore()
beforeEach(async () => {
  await store.empty()
  store.group = 'gitlab'
})

function register(definition: LimitDefinition, knewSince = ''): Promise<string> {
  const rules = { gitlab: parseLimit('gitlab', definition) }
  return registerLimits(store.redis, store.groupRequests().keys, rules, { knewSince, nowUs: store.nowUs })
}

function acquire() {
  const asked = { limits: ['gitlab'], permits: [1], level: 'normal', stale: undefined } as const
  return acquireShared(store.groupRequests(), { ...asked, nowUs: store.nowUs })
}

async function limitNow(): Promise<number | undefined> {
  const [row] = await readSharedLimits(store.groupRequests(), ['gitlab'], store.nowUs)
  return row?.limit
}

it('makes limits known to their group', async () => {
  const { reply, changes } = await store.changesOf(() => register('10/s'))

  expect(reply).toBe('1000000000')
  expect(changes).toEqual({
    '@limits': {
      '@restarts': '0:0',
      '@server': 'server-1',
      '@since': '1000000000',
      'gitlab/rule': '{"burst":1,"count":10,"jitter":50000,"kind":"bucket","name":"gitlab","window":1000000}',
    },
  })
})

it('takes over what later code declares, but not against an operator’s change', async () => {
  await register('10/s')
  await register('20/s')
  expect(await limitNow()).toBe(20)

  const changed = { name: 'gitlab', rule: parseLimit('gitlab', '5/s'), isDeclared: false, nowUs: store.nowUs }
  await changeLimit(store.groupRequests(), changed)
  await register('30/s')

  expect(await limitNow()).toBe(5)
})

it.each([
  [{ kind: 'window', limit: 1_000, windowMs: 86_400_000 }, { gitlab: null }],
  [
    { kind: 'quota', threshold: 0 },
    { gitlab: null, 'gitlab/jitter': null },
  ],
] as const)(
  'starts a limit anew that later code declares with another kind: $0.kind',
  async (definition, forgotten) => {
    await register('10/s')
    await acquire()
    await store.client.hset('test:{gitlab}:@limits', 'gitlab/pushed', '0:0.7000:0:1.0000')
    store.now += 5_000_000

    const { changes } = await store.changesOf(() => register(definition))

    expect(changes).toEqual({ '@limits': { ...forgotten, 'gitlab/rule': expect.stringContaining(definition.kind) } })
    expect(await acquire()).toMatchObject({ answers: [{ isGranted: true }] })
  },
)

it('closes the limits of a store that has lost them, as after a restart', async () => {
  await register('10/s', '900000000')

  const [row] = await readSharedLimits(store.groupRequests(), ['gitlab'], store.nowUs)
  expect(row).toMatchObject({ available: 0, opensInUs: 1_050_000 })
  expect((await store.dump())['@limits']).toMatchObject({ hash: { '@lost': store.nowUs } })
})

it('closes them also when a process has made them known again that did not know them, and once', async () => {
  await register('10/s')
  store.now += 2_000_000
  await register('10/s', '900000000')
  const lostAt = store.nowUs
  store.now += 500_000

  const { changes } = await store.changesOf(() => register('10/s', '900000000'))

  expect(changes).toEqual({})
  const [row] = await readSharedLimits(store.groupRequests(), ['gitlab'], store.nowUs)
  expect(row).toMatchObject({ available: 0, opensInUs: 550_000 })
  expect((await store.dump())['@limits']).toMatchObject({ hash: { '@lost': lostAt, '@restarts': `1:${lostAt}` } })
})

it('leaves them open for a caller that knows them as they are, and for one that knew them before that was noted', async () => {
  const since = await register('10/s')
  const known = await store.changesOf(() => register('10/s', since))
  await store.client.hdel('test:{gitlab}:@limits', '@since')
  const older = await store.changesOf(() => register('10/s', '0'))

  expect([known, older]).toEqual([
    { reply: since, changes: {} },
    { reply: '0', changes: {} },
  ])
})
