import { readFile } from 'node:fs/promises'
import { expect, it, onTestFinished } from 'vitest'
import { Sluice } from '../../src/index.ts'
import { startRedis } from '../../src/testing/redis-server.ts'

it('works as a user with the permissions that the guide names, and no others', async () => {
  const guide = await readFile(new URL('../../docs/guides/redis.md', import.meta.url), 'utf8')
  const [, rules = ''] = /^ACL SETUSER sluice (.*)$/m.exec(guide) ?? []
  const server = await startRedis()
  await server.client().call('ACL', 'SETUSER', 'sluice', ...rules.replace('>secret', '>pass').split(' '))
  const sluice = new Sluice({ redis: { path: server.path, username: 'sluice', password: 'pass' } })
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
