import { expect, it } from 'vitest'
import { keyPrefix } from '../../src/store/keys.ts'
import { breaks, fillForAudit } from './broken-queues.ts'
import { drain, useEngine } from './engine.ts'

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

it('lets the queue go on after a repair', async () => {
  const queue = engine.queue()
  await queue.submit({ jobs: [1, 2, 3].map((payload) => ({ type: 'T', tenant: 'a', payload })) })
  const key = keyPrefix(engine.prefix, 'q')
  await engine.server.client().del(`${key}ready:normal`, `${key}since:normal`)
  expect(await queue.claim(1)).toEqual([])

  await queue.audit()

  expect(await drain(queue, (job) => String(job.payload))).toEqual(['1', '2', '3'])
})
