import { expect, it } from 'vitest'
import type { AuditReport } from '../../src/index.ts'
import { keyPrefix } from '../../src/store/keys.ts'
import { breaks, fillForAudit } from './broken-queues.ts'
import { drain } from './drain.ts'
import { useEngine } from './engine.ts'

const engine = useEngine()

it.each(Object.entries(breaks))('finds and mends %s', async (kind, breakIt) => {
  const queue = engine.queue()
  await fillForAudit(queue)
  const client = engine.server.client()
  const before = await queue.audit()
  expect(before.differences).toEqual([])

  await breakIt(client, (name) => keyPrefix(engine.prefix, 'q') + name)
  const looked = await queue.audit({ repair: false })
  const mended = await queue.audit()
  let again = await queue.audit()
  // What is mended in one place may show in the counts of another, which the next look puts right.
  for (let tries = 0; again.differences.length > 0 && tries < 2; tries++) again = await queue.audit()

  expect(Object.keys(looked.counts)).toContain(kind)
  expect(mended.counts).toMatchObject({ [kind]: expect.any(Number) })
  expect(again).toMatchObject({ differences: [], skipped: [] })
})

it('finds nothing in a queue under load', async () => {
  const queue = engine.queue({ limits: { tenant: '200/s' } })
  const jobs = Array.from({ length: 1_500 }, (_, at) => ({
    type: 'T',
    tenant: `t${at % 20}`,
    delayMs: at % 3 ? 0 : at,
    ...(at % 4 === 0 ? { lane: `l${at % 5}`, ordered: true } : {}),
  }))
  let runs = 0
  queue.process('T', () => {
    runs += 1
    if (runs % 10 === 0) throw new Error('again')
  })
  const submitted = queue.submit({ jobs })

  for (let times = 0; times < 10; times++) {
    const { differences } = await queue.audit()
    expect(differences).toEqual([])
  }

  await submitted
  expect(runs).toBeGreaterThan(0)
})

it('ends when it is told to, goes on from there, and finds all there is', async () => {
  const queue = engine.queue()
  await fillForAudit(queue)
  const key = keyPrefix(engine.prefix, 'q')
  await engine.server.client().del(`${key}ready:normal`, `${key}since:normal`)
  const whole = await queue.audit({ repair: false })
  const pieces: AuditReport[] = []
  const signal = AbortSignal.abort()

  for (let cursor: string | undefined = 'aside.0'; cursor !== undefined; cursor = pieces.at(-1)?.cursor) {
    pieces.push(await queue.audit({ repair: false, signal, cursor }))
  }

  expect(whole).toMatchObject({ cursor: undefined, tenants: expect.any(Number) })
  expect(pieces.length).toBeGreaterThan(3)
  // Keys of one tenant may be found by several.
  expect(pieces.reduce((sum, { tenants }) => sum + tenants, 0)).toBeGreaterThanOrEqual(whole.tenants)
  const found = pieces.flatMap(({ differences }) => differences.map(({ kind }) => kind))
  expect([...new Set(found)].sort()).toEqual(Object.keys(whole.counts).sort())
  await expect(queue.audit({ cursor: 'x' })).rejects.toThrow('the cursor of an earlier audit')
  for (let tries = 0; tries < 3; tries++) await queue.audit()
})

it('lets the queue go on after a repair', async () => {
  const queue = engine.queue()
  await queue.submit({ jobs: [1, 2, 3].map((payload) => ({ type: 'T', tenant: 'a', payload })) })
  const key = keyPrefix(engine.prefix, 'q')
  await engine.server.client().del(`${key}ready:normal`, `${key}since:normal`)
  expect(await queue.claim(1)).toEqual([])

  await queue.audit()

  expect(await drain(queue, (job) => String(job.payload))).toEqual(['1', '2', '3'])
})
