import { createServer, type IncomingHttpHeaders } from 'node:http'
import type { AddressInfo } from 'node:net'
import { text } from 'node:stream/consumers'
import { Webhook } from 'standardwebhooks'
import { expect, it, onTestFinished } from 'vitest'
import { Sluice } from '../../src/index.ts'
import { until } from '../support/until.ts'
import { useEngine } from './engine.ts'
import { payloads } from './payloads.ts'

const engine = useEngine()
const secret = `whsec_${Buffer.alloc(24, 7).toString('base64')}`

/** Refuses the first request and keeps all of them. */
async function receiver() {
  const requests: { headers: IncomingHttpHeaders; body: string }[] = []
  const server = createServer((request, response) => {
    void text(request).then((body) => {
      requests.push({ headers: request.headers, body })
      response.writeHead(requests.length === 1 ? 503 : 204).end()
    })
  })
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  onTestFinished(() => void server.close())
  return { requests, url: `http://127.0.0.1:${(server.address() as AddressInfo).port}/told` }
}

it('tell of the end of an action, signed, again until somebody takes it, whatever its tenant is called', async () => {
  const { requests, url } = await receiver()
  const sluice = new Sluice({
    redis: { path: engine.server.path },
    prefix: engine.prefix,
    log: () => {},
    webhooks: { allowPrivate: ['127.0.0.1'] },
  })
  onTestFinished(() => sluice.close())
  const queue = sluice.queue('q')
  queue.process('T', () => {})

  const action = await queue.submit({ tenant: '名前 ü', type: 'T', jobs: payloads(2), webhook: { url, secret } })
  await until(() => requests.length === 2)

  const [first, second] = requests.map(({ headers, body }) => ({
    id: headers['webhook-id'],
    told: new Webhook(secret).verify(body, headers as Record<string, string>),
  }))
  expect(first?.id).toMatch(/^msg_[0-9a-f]{32}$/)
  expect(second?.id).toBe(first?.id)
  expect(second?.told).toMatchObject({
    type: 'action.completed',
    data: { id: action.id, state: 'COMPLETED', counts: { total: 2, succeeded: 2 } },
  })
  expect(requests[1]?.body).not.toContain(secret)
})

it('are not told at private addresses, and the log says which option allows it', async () => {
  const { requests, url } = await receiver()
  const queue = engine.queue()
  queue.process('T', () => {})

  await queue.submit({ tenant: 'a', type: 'T', jobs: payloads(1), webhook: { url, secret } })
  const failed = () => engine.log.find(({ event }) => event === 'webhook.failed')
  await until(() => failed() !== undefined)

  expect(String(failed()?.error)).toContain('Allow it with webhooks.allowPrivate if that is meant.')
  expect(requests).toEqual([])
})
