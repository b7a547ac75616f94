import { expect, it } from 'vitest'
import { useScriptStore } from '../../../test/support/script-store/use-script-store.ts'
import { readCongestion } from './read-congestion.ts'
import { resetCongestion } from './reset-congestion.ts'

const store = useScriptStore()

function reset(tenant: string) {
  return resetCongestion(store.requests(), tenant, store.nowUs)
}

async function statistics() {
  const { tenants } = await readCongestion(store.requests(), { tenant: 'a' }, store.nowUs)
  const { throttles, throttledAt, lastBackoffMs, finished } = tenants[0] ?? {}
  return { throttles, throttledAt, lastBackoffMs, finished }
}

const nothing = { throttles: 0, throttledAt: 0, lastBackoffMs: 0, finished: 0 }

it('starts the counts over, and what runs meanwhile counts when it ends', async () => {
  await store.submit('a', 3)
  await store.finish(await store.claim(1), { outcome: 'throttled', delayMs: 1_000 })
  const running = await store.claim(1)

  const { reply, changes } = await store.changesOf(() => reset('a'))

  expect(reply).toBe(true)
  expect(changes).toEqual({ 'tenant:a': { 'pace.backoff': null, 'state.throttled': null } })
  expect(await statistics()).toEqual(nothing)

  await store.finish(running, { outcome: 'succeeded' })
  expect(await statistics()).toEqual({ ...nothing, finished: 1 })
})

it('makes no tenant that is not known', async () => {
  const { reply, changes } = await store.changesOf(() => reset('nobody'))

  expect(reply).toBe(false)
  expect(changes).toEqual({})
})

it('happens by itself when an action ends and nothing else of its tenant is to be done', async () => {
  await store.openAction('mail')
  await store.submit('a', 2, { lane: '@mail' })
  await store.sealAction('mail')
  await store.finish(await store.claim(1), { outcome: 'throttled', delayMs: 1_000 })
  await store.finish(await store.claim(1), { outcome: 'succeeded' })
  expect(await statistics()).toMatchObject({ throttles: 1, finished: 1 })

  store.now += 1_000_000
  await store.finish(await store.claim(1), { outcome: 'succeeded' })

  expect(await statistics()).toEqual(nothing)
})

it('does not happen while other jobs of the tenant wait', async () => {
  await store.openAction('mail')
  await store.submit('a', 1, { lane: '@mail' })
  await store.sealAction('mail')
  await store.finish(await store.claim(1), { outcome: 'throttled', delayMs: 1_000 })
  await store.submit('a', 1)

  store.now += 1_000_000
  await store.finish(await store.claim(1), { outcome: 'succeeded' })

  expect(await statistics()).toMatchObject({ throttles: 1 })
})

it('runs while Redis is out of memory', async () => {
  await store.submit('a', 1)

  expect(await store.outOfMemory(() => reset('a'))).toBe(true)
})
