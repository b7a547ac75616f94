import { describe, expect, it } from 'vitest'
import type { ClaimedJob, Queue } from '../../src/index.ts'
import { keyPrefix } from '../../src/store/keys.ts'
import { drain } from './drain.ts'
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

describe('an ordered lane', () => {
  async function fillOrdered(): Promise<{ queue: Queue; first: ClaimedJob }> {
    const queue = lossyQueue()
    const jobs = ['1', '2', '3'].map((id) => ({ id, type: 'T', tenant: 'a', lane: 'L', ordered: true }))
    await queue.submit({ jobs })
    const [first] = await queue.claim(1)
    return { queue, first: first as ClaimedJob }
  }

  async function expectToGoOn(queue: Queue): Promise<void> {
    expect(await queue.audit()).toMatchObject({ differences: [], skipped: [] })
    expect(await queue.counts()).toMatchObject({ waiting: 2, running: 0, delayed: 0 })
    expect((await queue.tenant('a').view()).waiting).toBe(2)
    expect(await drain(queue, (job) => job.id)).toEqual(['2', '3'])
  }

  it('goes on after the claim was lost whose job it waits for', async () => {
    const { queue } = await fillOrdered()
    const client = engine.server.client()
    await client.del(await client.keys(`${keys()}claim:*`))

    const { counts } = await queue.audit()

    expect(counts).toMatchObject({ 'lane.busy': 1, 'tenant.running': 1 })
    expect(counts).not.toHaveProperty('queue.waiting')
    await expectToGoOn(queue)
  })

  it('goes on after the record of the delayed job was lost that it waits for', async () => {
    const { queue, first } = await fillOrdered()
    await first.fail(new Error('no'))
    await engine.server.client().del(`${keys()}aside`)

    const { counts } = await queue.audit()

    expect(counts).toMatchObject({ 'lane.busy': 1, 'delayed.record': 1, 'tenant.delayed': 1 })
    expect(counts).not.toHaveProperty('queue.waiting')
    await expectToGoOn(queue)
  })

  it('goes on after the job was lost that it waits for, of an action as well', async () => {
    const queue = lossyQueue()
    const action = await queue.submit({ tenant: 'a', action: 'x', type: 'T', ordered: true, jobs: [{}, {}] })
    await queue.claim(1)
    const client = engine.server.client()
    await client.del(await client.keys(`${keys()}claim:*`))

    const { counts } = await queue.audit()

    expect(counts).toMatchObject({ 'lane.busy': 1, 'action.running': 1, 'tenant.running': 1 })
    expect(await queue.audit()).toMatchObject({ differences: [] })
    expect(await drain(queue, () => 'ran')).toEqual(['ran'])
    expect(await action.finished({ timeoutMs: 5_000 })).toMatchObject({ state: 'COMPLETED' })
  })

  it('keeps waiting for a job whose claim has lost its lease, and runs it first', async () => {
    const { queue } = await fillOrdered()
    await engine.server.client().del(`${keys()}leases`)

    const { counts } = await queue.audit()

    expect(counts).toMatchObject({ 'claim.lease': 1 })
    expect(counts).not.toHaveProperty('lane.busy')
    expect(await drain(queue, (job) => job.id)).toEqual(['1', '2', '3'])
  })
})
