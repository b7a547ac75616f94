import { afterAll, afterEach, beforeAll, beforeEach, expect, it } from 'vitest'
import { type Queue, Sluice, type SluiceOptions } from '../../src/index.ts'
import type { TestRedis } from '../../src/testing/redis-server.ts'
import { startSentinels, type TestSentinels } from '../support/sentinels.ts'

let sentinels: TestSentinels
let master: TestRedis
let replicas: readonly TestRedis[]
const open: Sluice[] = []

beforeAll(async () => {
  sentinels = await startSentinels()
})

beforeEach(async () => {
  await sentinels.heal()
  master = await sentinels.master()
  replicas = sentinels.servers.filter((server) => server !== master)
})

afterEach(async () => {
  for (const server of sentinels.servers) if (server.isRunning) await server.kill('SIGCONT')
  await Promise.all(open.splice(0).map((each) => each.close()))
})

afterAll(() => sentinels?.stop())

let queues = 0

function queueWith(options: Partial<SluiceOptions>): Queue {
  const sluice = new Sluice({ redis: sentinels.redis, ...options })
  open.push(sluice)
  return sluice.queue(`q${++queues}`)
}

async function freezeReplicas(): Promise<void> {
  for (const replica of replicas) await replica.kill('SIGSTOP')
}

it('answers a submit when the replicas have it', async () => {
  const queue = queueWith({ durability: { replicas: 2 } })

  const { id } = await queue.submit({ id: 'given', type: 'CALL', payload: 1 })

  const keys = await Promise.all(replicas.map((replica) => replica.client().keys(`sluice:{${queue.name}}:*:lane:*`)))
  expect(id).toBe('given')
  expect(keys.map((found) => found.length)).toEqual([1, 1])
})

it('says that too few replicas have a submit, and stores it once when it is repeated', async () => {
  const queue = queueWith({ durability: { replicas: 1, timeoutMs: 300 } })
  await queue.counts()
  await freezeReplicas()

  await expect(queue.submit({ id: 'given', type: 'CALL', payload: 1 })).rejects.toMatchObject({
    code: 'SLUICE_TOO_FEW_REPLICAS',
    wanted: 1,
    answered: 0,
    timeoutMs: 300,
  })

  for (const replica of replicas) await replica.kill('SIGCONT')
  expect(await queue.submit({ id: 'given', type: 'CALL', payload: 1 })).toEqual({ id: 'given', isNew: false })
  expect((await queue.counts()).waiting).toBe(1)
})

it.each([
  ['an action', (queue: Queue) => queue.submit({ tenant: 'a', action: 'n', type: 'CALL', jobs: [{ payload: 1 }] })],
  ['a pause', (queue: Queue) => queue.pause()],
  ['a change of limits', (queue: Queue) => queue.limits.change({ queue: '5/s' })],
  ["a tenant's weight", (queue: Queue) => queue.tenant('a').set({ weight: 2 })],
  ['a cancelled job', (queue: Queue) => queue.cancel('given')],
])('holds for %s', async (_what, change) => {
  const queue = queueWith({ durability: { timeoutMs: 200 } })
  await queue.submit({ id: 'given', type: 'CALL', payload: 1 })
  await freezeReplicas()

  await expect(change(queue)).rejects.toMatchObject({ code: 'SLUICE_TOO_FEW_REPLICAS' })
})

it('does not hold up whoever only looks', async () => {
  const queue = queueWith({ durability: { timeoutMs: 200 } })
  await queue.submit({ id: 'given', tenant: 'a', type: 'CALL', payload: 1 })
  await freezeReplicas()

  const [counts, tenant, job, why] = await Promise.all([
    queue.counts(),
    queue.tenant('a').view(),
    queue.job('given', { tenant: 'a' }),
    queue.explain({ tenant: 'a' }),
  ])

  expect([counts.waiting, tenant.waiting, job?.state, why.tenant]).toEqual([1, 1, 'waiting', 'a'])
})

it('does not hold up claims and finishes', async () => {
  const queue = queueWith({ durability: { timeoutMs: 60_000 } })
  await queue.submit({ type: 'CALL', payload: 1 })
  await freezeReplicas()

  const [job] = await queue.claim(1)
  await job?.succeed()

  expect((await queue.counts()).succeeded).toBe(1)
})

it('lets many wait together', async () => {
  const queue = queueWith({ durability: { replicas: 1 } })
  await queue.submit({ type: 'CALL', payload: 0 })
  const waitsBefore = await waits()

  await Promise.all(Array.from({ length: 200 }, (_, n) => queue.submit({ type: 'CALL', payload: n })))

  expect((await waits()) - waitsBefore).toBeLessThan(100)
})

it('repeats a submit whose master was replaced before a replica was known to have it', async () => {
  const queue = queueWith({ durability: { replicas: 1, timeoutMs: 20_000 } })
  await queue.submit({ id: 'first', type: 'CALL', payload: 1 })
  await freezeReplicas()
  const submitting = queue.submit({ id: 'second', type: 'CALL', payload: 2 })
  await waitingFor(master)

  await master.kill('SIGKILL')
  for (const replica of replicas) await replica.kill('SIGCONT')

  // The replica that took over had never heard of it: the repeated call has stored it there.
  expect(await submitting).toEqual({ id: 'second', isNew: true })
  expect((await queue.counts()).waiting).toBe(2)
})

async function waits(): Promise<number> {
  const stats = await master.client().info('commandstats')
  return Number(/cmdstat_wait:calls=(\d+)/.exec(stats)?.[1] ?? 0)
}

/** A client that waits for replicas is blocked: then the write before it is done. */
async function waitingFor(server: TestRedis): Promise<void> {
  const client = server.client()
  await expect.poll(async () => await client.info('clients'), { timeout: 5_000 }).toContain('blocked_clients:1')
}
