import { expect, it, onTestFinished } from 'vitest'
import { Sluice } from '../../src/index.ts'
import { startRedis } from '../../src/testing/redis-server.ts'
import { codeBlocks, read } from './markdown.ts'

it('works as a user with the permissions that the guide names, and no others', async () => {
  const blocks = codeBlocks(read('docs/guides/redis.md')).filter(({ language }) => language === 'redis')
  const server = await startRedis()
  for (const { text } of blocks) {
    const [command = '', ...args] = text.trim().split(' ')
    await server.client().call(command, ...args)
  }
  const sluice = new Sluice({ redis: { path: server.path, username: 'sluice', password: 'secret' } })
  onTestFinished(async () => {
    await sluice.close()
    await server.stop()
  })
  const queue = sluice.queue('mail', { limits: { queue: '1000/s', tenant: { kind: 'concurrency', max: 2 } } })
  queue.process('send', async () => 'sent')

  const action = await queue.submit({ type: 'send', tenant: 'a', jobs: [{ payload: 1 }, { payload: 2 }] })

  await expect(action.finished({ timeoutMs: 20_000 })).resolves.toMatchObject({ state: 'COMPLETED' })
  expect(await queue.counts()).toMatchObject({ succeeded: 2 })
  const denied = (await server.client().call('ACL', 'LOG')) as unknown[]
  expect(denied).toEqual([])
})
