import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, expect, it } from 'vitest'
import { processConfig } from './process-options.ts'

let folder: string
let config: string

beforeAll(() => {
  folder = mkdtempSync(join(tmpdir(), 'sluice-options-'))
  config = join(folder, 'sluice.config.mjs')
  const queues = { promotions: { limits: { queue: '500/s', tenant: '50/s' }, maxRetries: 7 }, mail: {} }
  writeFileSync(config, `export default ${JSON.stringify({ redis: 'redis://file:1', prefix: 'file', queues })}`)
})
afterAll(() => rmSync(folder, { recursive: true }))

it('a rate of the command line replaces the rate of the queue, and none of its other limits and options', async () => {
  const { queues } = await processConfig({ config, queue: ['promotions=300/s', 'mail=5/s'] })

  expect(queues.promotions).toMatchObject({ limits: { queue: '300/s', tenant: '50/s' }, maxRetries: 7 })
  expect(queues.mail).toMatchObject({ limits: { queue: '5/s' } })
})

it('a queue that is only named keeps its limits', async () => {
  const { queues } = await processConfig({ config, queue: ['promotions'] })

  expect(queues.promotions).toMatchObject({ limits: { queue: '500/s', tenant: '50/s' } })
})

it('a queue that cannot be served as the file has it is refused before anything is opened', async () => {
  const wrong = join(folder, 'wrong.config.mjs')
  writeFileSync(wrong, "export default { queues: { mail: { http: { allowHosts: 'api.example.com' } } } }")

  await expect(processConfig({ config: wrong, allowHost: ['b.example'] })).rejects.toThrow(
    'Invalid options for queue "mail": http.allowHosts must be an array, not "api.example.com"',
  )
})

it('the store is where the command line says, else where the file says', async () => {
  const { redis, prefix, dataDir } = await processConfig({ config, redis: 'redis://line:1', data: 'there' })

  expect({ redis, prefix, dataDir }).toEqual({ redis: 'redis://line:1', prefix: 'file', dataDir: 'there' })
})
