import { expect, it } from 'vitest'
import { shortly } from '../../../test/support/script-store/script-jobs.ts'
import { sharedLimit } from '../../../test/support/script-store/shared-limits.ts'
import { useScriptStore } from '../../../test/support/script-store/use-script-store.ts'
import { changeTenant } from './change-tenant.ts'

const bucket = { kind: 'bucket', limit: 10, windowMs: 1_000, burst: 2, jitterMs: 100 } as const

const store = useScriptStore()

/** What the limits of the queue have granted and denied so far. */
async function counted(): Promise<Record<string, string>> {
  const fields = Object.entries(await store.client.hgetall(store.keys().queue))
  return Object.fromEntries(fields.filter(([name]) => /^(granted|denied):/.test(name)))
}

it('counts what each limit over a job grants, slots as well as permits', async () => {
  const limits = { queue: { kind: 'concurrency', max: 9 }, levels: { high: bucket }, tenant: bucket } as const
  await store.begin({ limits })
  await store.submit('a', 1, { level: 'high' })
  await store.submit('a', 1, { level: 'low' })

  expect(shortly(await store.claim(5))).toBe('a1 a1')
  expect(await counted()).toEqual({
    'granted:queue/queue': '2',
    'granted:high/high': '1',
    'granted:tenant/tenant': '2',
  })
})

it('counts no denial of a limit that nobody is in line for', async () => {
  await store.begin({ limits: { queue: bucket, levels: { high: bucket } } })
  await store.submit('a', 2, { level: 'high' })

  await store.claim(5)
  await store.claim(5)

  expect(await counted()).toEqual({ 'granted:queue/queue': '2', 'granted:high/high': '2' })
})

it('counts a level that is closed once in a claim, and not for the levels below it', async () => {
  await store.begin({ limits: { levels: { high: bucket, low: bucket } } })
  await store.submit('a', 5, { level: 'high' })
  await store.submit('a', 1, { level: 'low' })

  expect(shortly(await store.claim(5))).toBe('a1 a2 a1')
  expect(await counted()).toEqual({ 'granted:high/high': '2', 'denied:high/high/rate': '1', 'granted:low/low': '1' })
})

it('counts names that only tenants’ own limits have as other', async () => {
  await store.begin({ limits: { tenant: bucket } })
  const own = { name: 'mine', kind: 'bucket', count: 1, window: 1_000_000, burst: 1, jitter: 0 } as const
  await changeTenant(store.requests(), 'a', { limits: { mine: own } }, store.nowUs)
  await store.submit('a', 2)

  expect(shortly(await store.claim(5))).toBe('a1')
  expect(await counted()).toEqual({
    'granted:tenant/tenant': '1',
    'granted:tenant/other': '1',
    'denied:tenant/other/rate': '1',
  })
})

it('counts a shared limit on two levels for the level that asked', async () => {
  await store.empty()
  store.group = 'gitlab'
  store.use('a')
  const gitlab = sharedLimit({ ...bucket, burst: 2 })
  await store.register({ limits: { levels: { high: { gitlab }, low: { gitlab } } } })
  await store.submit('a', 1, { level: 'high' })
  await store.submit('a', 5, { level: 'low' })

  expect(shortly(await store.claim(5))).toBe('a1 a1')
  await store.submit('a', 1, { level: 'high' })
  await store.claim(5)

  expect(await counted()).toEqual({
    'granted:high/gitlab': '1',
    'granted:low/gitlab': '1',
    'denied:low/gitlab/rate': '2',
    'denied:high/gitlab/rate': '1',
  })
})
