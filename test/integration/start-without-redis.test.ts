import { expect, it, onTestFinished } from 'vitest'
import { Sluice } from '../../src/index.ts'
import { startRedis } from '../../src/testing/redis-server.ts'
import { withResolvers } from '../support/with-resolvers.ts'

it('a worker that is started while Redis is away comes up by itself, and is woken', async () => {
  const server = await startRedis()
  const sluice = new Sluice({ redis: { path: server.path }, commandTimeoutMs: 300, log: () => {} })
  onTestFinished(async () => {
    await sluice.close()
    await server.stop()
  })
  await server.kill()
  const queue = sluice.queue('q')
  const [first, second] = [withResolvers<string>(), withResolvers<string>()]
  queue.process('T', (job) => (job.id === 'first' ? first : second).resolve(job.id))
  await expect(queue.counts()).rejects.toMatchObject({ code: 'SLUICE_STORE_UNAVAILABLE' })

  await server.restart()
  await queue.submit({ type: 'T', id: 'first' })
  await first.promise
  await queue.submit({ type: 'T', id: 'second' })

  expect(await second.promise).toBe('second')
})
