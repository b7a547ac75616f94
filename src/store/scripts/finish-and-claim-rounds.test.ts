import { describe, expect, it } from 'vitest'
import { jobsOf, shortly } from '../../../test/support/script-store/script-jobs.ts'
import { useScriptStore } from '../../../test/support/script-store/use-script-store.ts'
import { changeTenant } from './change-tenant.ts'

const store = useScriptStore()

const SLOT = 8_000

interface Contest {
  /** Tenants that always have work, and their weights. */
  readonly busy: Readonly<Record<string, number>>
  /** Tenants that have one job at a time, and submit the next as soon as it was claimed. */
  readonly idling: Readonly<Record<string, number>>
  readonly slots: number
  /** Jobs claimed at a time. @default 1 */
  readonly atOnce?: number
  /** Where an idling tenant puts its job. */
  readonly lane?: (slot: number) => string
}

/** How many of the slots each tenant got. */
async function contest({ busy, idling, slots, atOnce = 1, lane = () => 'default' }: Contest) {
  for (const [tenant, weight] of Object.entries({ ...busy, ...idling }))
    if (weight !== 1) await changeTenant(store.requests(), tenant, { weight }, store.nowUs)
  for (const tenant of Object.keys(busy)) await store.submit(tenant, slots)
  const counts: Record<string, number> = Object.fromEntries(
    Object.keys({ ...busy, ...idling }).map((name) => [name, 0]),
  )
  const waiting = new Set<string>()
  for (let slot = 0; slot < slots; slot += atOnce) {
    for (const tenant of Object.keys(idling)) {
      if (waiting.has(tenant)) continue
      waiting.add(tenant)
      await store.submit(tenant, 1, { lane: lane(slot) })
    }
    store.now += SLOT * atOnce
    const claim = await store.claim(atOnce)
    for (const { jobKey } of jobsOf(claim)) {
      const tenant = jobKey.split(':').at(-1) as string
      counts[tenant] = (counts[tenant] ?? 0) + 1
      waiting.delete(tenant)
    }
    await store.finish(claim, { outcome: 'succeeded' })
  }
  return counts
}

describe('a tenant with new work', () => {
  it('goes before the rest of a turn that is under way, which goes on after it', async () => {
    await store.submit('a', 20)
    await store.claim(5)

    await store.submit('b', 1)

    expect([await store.claim(1), await store.claim(4)].map(shortly)).toEqual(['b1', 'a6 a7 a8 a9'])
  })

  it('goes behind those that came before it', async () => {
    await store.submit('z', 20)
    await store.claim(5)

    for (const tenant of ['d', 'b', 'c']) await store.submit(tenant, 1)

    expect(shortly(await store.claim(4))).toBe('d1 b1 c1 z6')
  })

  it('has one turn there, and the next behind those that were in line', async () => {
    for (const tenant of ['a', 'b']) await store.submit(tenant, 20)
    await store.claim(8)
    await store.claim(2)

    await store.submit('c', 5)

    expect(shortly(await store.claim(12))).toBe('c1 c2 c3 c4 a7 a8 b5 b6 b7 b8 c5 a9')
  })

  it('stands at the clock where progress counts', async () => {
    await store.begin({ alpha: 10 })
    await store.submit('a', 20)
    await store.claim(5)

    await store.submit('b', 1)

    expect(shortly(await store.claim(4))).toBe('a6 a7 a8 b1')
  })
})

describe('running out of work after every job', () => {
  it.each([1, 3])('earns nothing beside a tenant that is always busy, %i claimed at a time', async (atOnce) => {
    const counts = await contest({ busy: { flood: 1 }, idling: { idler: 1 }, slots: 180, atOnce })

    // With three hands it has one job for them in each claim, which is less than its share.
    expect(counts.idler).toBeLessThanOrEqual(90 + 4)
    expect(counts.idler).toBeGreaterThanOrEqual((atOnce === 1 ? 90 : 60) - 4)
  })

  it('earns nothing by another lane for each job', async () => {
    const lane = (slot: number): string => `lane-${slot}`
    const counts = await contest({ busy: { flood: 1 }, idling: { idler: 1 }, slots: 120, lane })

    expect(Math.abs((counts.idler as number) - 60)).toBeLessThanOrEqual(4)
  })

  it('earns nothing beside several that are always busy', async () => {
    const counts = await contest({ busy: { one: 1, two: 1, three: 1 }, idling: { idler: 1 }, slots: 240 })

    expect(counts.idler).toBeLessThanOrEqual(60 + 8)
    for (const busy of ['one', 'two', 'three']) expect(counts[busy]).toBeGreaterThanOrEqual(60 - 4)
  })

  it.each([
    { busy: 1, idler: 3, share: 0.75 },
    { busy: 3, idler: 1, share: 0.25 },
    { busy: 1, idler: 0.1, share: 1 / 11 },
  ])('leaves the share by weight as it is, $idler against $busy', async ({ busy, idler, share }) => {
    const counts = await contest({ busy: { flood: busy }, idling: { idler }, slots: 200 })

    expect(Math.abs((counts.idler as number) / 200 - share)).toBeLessThan(0.05)
  })

  it('leaves a busy tenant its share however many do so', async () => {
    const idling = Object.fromEntries(Array.from({ length: 14 }, (_, number) => [`idler-${number}`, 1]))

    const counts = await contest({ busy: { flood: 1 }, idling, slots: 450 })

    expect(counts.flood).toBeGreaterThanOrEqual(30 - 4)
    for (const idler of Object.keys(idling)) expect(Math.abs((counts[idler] as number) - 30)).toBeLessThanOrEqual(5)
  })

  it('leaves nobody out when all do so', async () => {
    const counts = await contest({ busy: {}, idling: { one: 1, two: 1, heavy: 2 }, slots: 120 })

    expect(Math.abs((counts.one as number) - (counts.two as number))).toBeLessThanOrEqual(4)
    expect(counts.heavy).toBeGreaterThanOrEqual((counts.one as number) - 4)
  })

  it('gives nothing back for the time it idled', async () => {
    await contest({ busy: { flood: 1 }, idling: {}, slots: 100 })
    await store.submit('flood', 200)

    const counts = await contest({ busy: {}, idling: { idler: 1 }, slots: 100 })

    expect(Math.abs((counts.idler as number) - 50)).toBeLessThanOrEqual(4)
  })
})
