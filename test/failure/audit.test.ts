import { afterEach, expect, it } from 'vitest'
import { keyPrefix } from '../../src/store/keys.ts'
import { Trial } from './trial.ts'

let trial: Trial
afterEach(() => trial.stop())

it('goes on from where a killed process was with the audit, and puts right what happened meanwhile', async () => {
  const audit = { everyMs: 100, stepMs: 150, idleStepMs: 150 }
  trial = await Trial.start({ queue: { audit } })
  const key = keyPrefix('sluice', 'calls')
  const client = trial.redis.client()
  const stored = () => client.hgetall(`${key}audit`)
  const first = await trial.worker()
  await trial.submitted({ count: 20, chunk: 20 })
  await first.ended(20)
  // A round takes several steps, and says how far it is with every third of a lease.
  await expect.poll(async () => (await stored()).position, { timeout: 10_000, interval: 20 }).toMatch(/^\w/)
  await first.end('SIGKILL')
  const left = await stored()
  await client.hset(`${key}running`, 'nobody', 3)

  await trial.worker()

  await expect.poll(async () => (await stored()).holder, { timeout: 10_000, interval: 20 }).not.toBe(left.holder)
  expect(await stored()).toMatchObject({ since: left.since })
  await expect.poll(async () => (await trial.queue.counts()).differences, { timeout: 10_000 }).toBe(1)
  expect(await client.hexists(`${key}running`, 'nobody')).toBe(0)
  client.disconnect()
})
