import { afterEach, expect, it } from 'vitest'
import { keyPrefix } from '../../src/store/keys.ts'
import { Scenario } from './scenario.ts'

let scenario: Scenario
afterEach(() => scenario.stop())

it('goes on from where a killed process was with the audit, and puts right what happened meanwhile', async () => {
  const audit = { everyMs: 100, stepMs: 150, idleStepMs: 150 }
  scenario = await Scenario.start({ queue: { audit } })
  const key = keyPrefix('sluice', 'calls')
  const client = scenario.redis.client()
  const stored = () => client.hgetall(`${key}audit`)
  const first = await scenario.worker()
  await scenario.submitted({ count: 20, chunk: 20 })
  await first.ended(20)
  // A round takes several steps, and says how far it is with every third of a lease.
  await expect.poll(async () => (await stored()).position, { timeout: 10_000, interval: 20 }).toMatch(/^\w/)
  await first.end('SIGKILL')
  const left = await stored()
  await client.hset(`${key}running`, 'nobody', 3)

  await scenario.worker()

  await expect.poll(async () => (await stored()).holder, { timeout: 10_000, interval: 20 }).not.toBe(left.holder)
  expect(await stored()).toMatchObject({ since: left.since })
  await expect.poll(async () => (await scenario.queue.counts()).differences, { timeout: 10_000 }).toBe(1)
  expect(await client.hexists(`${key}running`, 'nobody')).toBe(0)
  client.disconnect()
})
