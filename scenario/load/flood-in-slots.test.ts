import { expect, it } from 'vitest'
import { jobsOf, record } from '../../test/support/script-store/script-jobs.ts'
import { useScriptStore } from '../../test/support/script-store/use-script-store.ts'
import { idealStarts, type ScheduledJob } from './ideal-schedule.ts'
import { percentile } from './percentile.ts'
import { seededRandom } from './random.ts'

/**
 * The flood of the scenario without its processes: the scripts get the time from here, one claim for each slot. So there
 * is nothing in a wait but the turn order, and it comes out the same on every machine.
 */

const SECONDS = 8
/** Of a limit of 132/s: a tenth of it is little more than what a small tenant wants. */
const SLOT_MS = 8.015
const FLOOD_LANES = 100
const SMALL_TENANTS = 9
const SMALL_PER_SECOND = 10
/** For what is left when the last small job has come. */
const AFTERWARDS_MS = 1_500

const store = useScriptStore()

/** In the order in which they come. */
function smallJobs(batch: number): ScheduledJob[] {
  const jobs: ScheduledJob[] = []
  for (let number = 0; number < SMALL_TENANTS; number++) {
    const random = seededRandom(number)
    const gapMs = () => (batch / SMALL_PER_SECOND) * 1_000 * (0.5 + random())
    for (let at = gapMs(); at < SECONDS * 1_000 - AFTERWARDS_MS; at += gapMs())
      jobs.push(...Array<ScheduledJob>(batch).fill({ tenant: `small-${number}`, at }))
  }
  return jobs.sort((a, b) => a.at - b.at)
}

/** When the store started each of the small jobs beside a flood, in milliseconds of the run. */
async function startsBesideAFlood(small: readonly ScheduledJob[], slots: readonly number[]): Promise<number[]> {
  const begin = store.now
  const line = { level: 'normal', basePriority: undefined, kind: 'fresh' } as const
  const perLane = Math.ceil(slots.length / FLOOD_LANES)
  for (let lane = 0; lane < FLOOD_LANES; lane++) await store.submit('flood', perLane, { lane: `lane-${lane}` })
  const starts: number[] = []
  let next = 0
  for (const slot of slots) {
    for (let first = small[next]; first !== undefined && first.at <= slot; first = small[next]) {
      const { tenant, at } = first
      const entries: string[] = []
      while (small[next]?.at === at) entries.push(record({ position: next++ }))
      store.now = begin + Math.round(at * 1_000)
      await store.submitLines([{ ...line, tenant, lane: 'default', entries }])
    }
    store.now = begin + Math.round(slot * 1_000)
    const claim = await store.claim(1)
    for (const { record: text } of jobsOf(claim)) {
      const { position } = JSON.parse(text.split('\n').at(-1) as string)
      if (position !== undefined) starts[position] = slot
    }
    await store.finish(claim, { outcome: 'succeeded' })
  }
  return starts
}

it.each([
  { batch: 1, what: 'single jobs' },
  { batch: 10, what: 'ten jobs at a time' },
])('lets $what wait beside a flood as an ideal scheduler would', { timeout: 60_000 }, async ({ batch }) => {
  await store.begin()
  const small = smallJobs(batch)
  const slots = Array.from({ length: Math.floor((SECONDS * 1_000) / SLOT_MS) }, (_, slot) => slot * SLOT_MS)
  const flood = Array<ScheduledJob>(slots.length).fill({ tenant: 'flood', at: 0 })

  const actual = await startsBesideAFlood(small, slots)
  const ideal = idealStarts([...small, ...flood], slots)

  const waits = (starts: readonly (number | undefined)[]) =>
    small.map(({ at }, index) => (starts[index] ?? Infinity) - at)
  expect(percentile(waits(actual), 0.99) / percentile(waits(ideal), 0.99)).toBeLessThan(1.1)
  expect(percentile(waits(actual), 0.5)).toBeLessThan(percentile(waits(ideal), 0.5) * 1.1)
})
