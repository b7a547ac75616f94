import { expect, it } from 'vitest'
import type { Queue } from '../../src/index.ts'
import { keyPrefix } from '../../src/store/keys.ts'
import { useEngine } from './engine.ts'

const engine = useEngine()

const keys = () => keyPrefix(engine.prefix, 'q')

/** Not one of those whose jobs are all looked for at the end of a test. */
function lossyQueue(): Queue {
  return engine.sluice().queue('q')
}

/** Takes away delayed jobs of tenants whose names start so, with their records. */
async function loseDelayed(whose: string, most = Number.POSITIVE_INFINITY): Promise<void> {
  const client = engine.server.client()
  const jobs = await client.zrange(`${keys()}delayed`, 0, '-1')
  const lost = jobs.filter((job) => job.split(':')[3]?.startsWith(whose)).slice(0, most)
  await client.zrem(`${keys()}delayed`, ...lost)
  await client.hdel(`${keys()}aside`, ...lost)
}

it('finds in pieces what it finds at once: counts of tenants and actions that have nothing left', async () => {
  const queue = lossyQueue()
  await queue.submit({ jobs: ['a', 'b'].map((tenant) => ({ type: 'T', tenant, delayMs: 600_000 })) })
  await queue.submit({ tenant: 'a', action: 'x', type: 'T', jobs: [{ delayMs: 600_000 }, {}] })
  await loseDelayed('a')
  const found: string[] = []
  const signal = AbortSignal.abort()

  let report = await queue.audit({ repair: false, signal })
  found.push(...Object.keys(report.counts))
  while (report.cursor !== undefined) {
    report = await queue.audit({ repair: false, signal, cursor: report.cursor })
    found.push(...Object.keys(report.counts))
  }

  expect([...new Set(found)].sort()).toEqual(['action.delayed', 'queue.delayed', 'tenant.delayed'])
  expect((await queue.audit()).counts).toEqual({ 'action.delayed': 1, 'queue.delayed': 1, 'tenant.delayed': 1 })
  expect(await queue.audit()).toMatchObject({ differences: [], skipped: [] })
})

it('puts the counts of all tenants right that have lost what was delayed, however many', async () => {
  const queue = lossyQueue()
  const jobs = Array.from({ length: 700 }, (_, at) => ({ type: 'T', tenant: `t${at}`, delayMs: 600_000 }))
  await queue.submit({ jobs })
  await loseDelayed('t', 650)

  const report = await queue.audit()

  expect(report).toMatchObject({ counts: { 'tenant.delayed': 650, 'queue.delayed': 1 }, skipped: [] })
})
