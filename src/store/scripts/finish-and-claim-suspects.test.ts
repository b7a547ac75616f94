import { expect, it } from 'vitest'
import { jobsOf, record, shortly } from '../../../test/support/script-store/script-jobs.ts'
import { useScriptStore } from '../../../test/support/script-store/use-script-store.ts'

const store = useScriptStore()

const waiting = { hasSuspect: true, idleForMs: 60_000 }

/** As many tenants, each with one job that has outlived two leases and is due again. */
async function suspects(count: number): Promise<void> {
  const lines = Array.from({ length: count }, (_, index) => ({
    tenant: `t${String(index).padStart(3, '0')}`,
    level: 'normal' as const,
    lane: 'default',
    basePriority: undefined,
    kind: 'fresh' as const,
    entries: [record(1)],
  }))
  await store.submitLines(lines)
  for (let life = 1; life <= 2; life++) {
    let left = count
    while (left > 0) left -= jobsOf(await store.claim(1_000, { leaseMs: 1_000 }, 'dying')).length
    store.now += 2_000_000
    await reapAll()
  }
  store.now += 2_000_000
  for (let due = 0; due < count; due += 64) await store.claim(0)
}

async function reapAll(): Promise<void> {
  while ((await store.client.zcard(store.keys().leases)) > 0) await store.claim(0)
}

it('reaches who stands behind seventy tenants that have only a suspect each', async () => {
  await suspects(70)
  await store.claim(1)
  await store.submit('z', 1)

  const claimed = await store.claim(5, waiting)

  expect(shortly(claimed)).toBe('z1')
})

it('is idle when nobody else is in line: the same claim at once would find the same', async () => {
  await suspects(70)
  const [first] = jobsOf(await store.claim(1))

  const { word } = await store.claim(5, waiting)

  expect(first).toBeDefined()
  expect(word).toBe('idle')
})

it('comes again a little later when more are held than it may look at, and then sees those behind them', async () => {
  await suspects(140)
  await store.claim(1)
  await store.submit('z', 1, { basePriority: 50 })

  const first = await store.claim(5, waiting)
  store.now += 100_000
  const second = await store.claim(5, waiting)
  const third = await store.claim(5, waiting)

  expect(first).toMatchObject({ word: 'idle', waitMs: 100, holdsAlarm: true })
  expect([second, third].map(shortly)).toContain('z1')
})

it('gives a suspect to a process that runs none, whoever has passed over it', async () => {
  await suspects(70)
  await store.claim(1)
  await store.claim(5, waiting)

  const other = await store.claim(1, {}, 'other')

  expect(jobsOf(other)).toHaveLength(1)
})
