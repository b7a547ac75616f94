import { once } from 'node:events'
import { createServer, type Server, type ServerResponse } from 'node:http'
import { type AddressInfo, connect, type Socket } from 'node:net'
import type { FastifyReply } from 'fastify'
import { afterEach, beforeEach, expect, it } from 'vitest'
import { refuseIfGone, untilGone } from './client-gone.ts'

let server: Server

beforeEach(async () => {
  server = createServer()
  await once(server.listen(0, '127.0.0.1'), 'listening')
})
afterEach(() => {
  server.closeAllConnections()
  server.close()
})

/** An answer that somebody waits for. */
async function asked(): Promise<{ client: Socket; raw: ServerResponse; reply: FastifyReply }> {
  const request = once(server, 'request')
  const client = connect((server.address() as AddressInfo).port, '127.0.0.1')
  client.write('GET / HTTP/1.1\r\nHost: localhost\r\n\r\n')
  const [, raw] = (await request) as [unknown, ServerResponse]
  return { client, raw, reply: { raw } as FastifyReply }
}

it('aborts when the client goes', async () => {
  const { client, raw, reply } = await asked()
  const signal = untilGone(reply, new AbortController().signal)

  client.destroy()
  await once(raw, 'close')

  expect(String(signal.reason)).toContain('went away')
})

it('aborts when it is cut', async () => {
  const { reply } = await asked()
  const cut = new AbortController()
  const signal = untilGone(reply, cut.signal)

  cut.abort(new Error('closing'))

  expect(String(signal.reason)).toContain('closing')
})

it('knows that the client had gone before anybody asked', async () => {
  const { client, raw, reply } = await asked()
  client.destroy()
  await once(raw, 'close')

  const signal = untilGone(reply, new AbortController().signal)

  expect(String(signal.reason)).toContain('went away')
  expect(() => refuseIfGone(reply)).toThrow('went away')
})
