/** Calls of the processor `httpRequest` to real servers on loopback, which end with their test. */
import { once } from 'node:events'
import type { RequestListener } from 'node:http'
import { type AddressInfo, createServer, type Socket } from 'node:net'
import { afterEach, expect } from 'vitest'
import { type CallContext, type HttpRequestHandler, httpRequest } from '../../src/bulk/http-request/http-request.ts'
import type { HttpRequestOptions } from '../../src/bulk/http-request/options.ts'
import type { HttpRequestPayload } from '../../src/bulk/http-request/payload.ts'
import type { HttpRequestResult } from '../../src/bulk/http-request/result.ts'
import { HttpUpstream } from './http-upstream.ts'

/** What was started, to be ended after the test. */
const ends: (() => unknown)[] = []
afterEach(async () => {
  for (const end of ends.splice(0).reverse()) await end()
})

export async function upstreamThat(answer: RequestListener, options?: Parameters<typeof HttpUpstream.start>[1]) {
  const upstream = await HttpUpstream.start(answer, options)
  ends.push(() => upstream.stop())
  return upstream
}

/** A server below HTTP, for answers that no HTTP server would give. */
export async function rawUpstreamThat(answer: (socket: Socket) => void): Promise<string> {
  const server = createServer((socket) => {
    ends.push(() => socket.destroy())
    socket.on('error', () => {})
    socket.once('data', () => answer(socket))
  })
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  ends.push(() => server.close())
  return `http://127.0.0.1:${(server.address() as AddressInfo).port}/`
}

export function processor(options: Partial<HttpRequestOptions> = {}): HttpRequestHandler {
  const handler = httpRequest({ allowHosts: ['*:*'], allowPrivate: ['127.0.0.1'], ...options })
  ends.push(() => handler.close())
  return handler
}

export const contextWith = (more: Partial<CallContext> = {}): CallContext => ({
  signal: new AbortController().signal,
  admit: async () => {},
  learn: () => undefined,
  ...more,
})

export const run = (handler: HttpRequestHandler, payload: HttpRequestPayload, context = contextWith()) =>
  handler({ payload }, context)

export async function resultOf(handler: HttpRequestHandler, payload: HttpRequestPayload): Promise<HttpRequestResult> {
  const result = await run(handler, payload)
  expect(result).toHaveProperty('status')
  return result as HttpRequestResult
}

export const reasonOf = async (handler: HttpRequestHandler, payload: HttpRequestPayload): Promise<string> => {
  const outcome = await run(handler, payload)
  expect(outcome).toHaveProperty('reason')
  return (outcome as { reason: string }).reason
}
