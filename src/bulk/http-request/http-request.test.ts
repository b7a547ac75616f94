import type { ServerResponse } from 'node:http'
import { gzipSync } from 'node:zlib'
import { beforeEach, describe, expect, it } from 'vitest'
import { certificate } from '../../../test/support/certificate.ts'
import {
  contextWith,
  processor,
  reasonOf,
  resultOf,
  run,
  upstreamThat,
} from '../../../test/support/http-request-calls.ts'
import type { HttpUpstream } from '../../../test/support/http-upstream.ts'
import { discard, throttled } from '../../engine/outcome.ts'

const json = (response: ServerResponse, value: unknown) =>
  response.setHeader('content-type', 'application/json').end(JSON.stringify(value))

describe('a call', () => {
  it('arrives as the payload says, and its answer is the result', async () => {
    const upstream = await upstreamThat((_, response) => {
      response.setHeader('etag', '"1"').setHeader('set-cookie', 'a=1')
      response.statusCode = 201
      json(response, { id: 17 })
    })

    const result = await resultOf(processor(), {
      method: 'POST',
      url: upstream.url('/users?page=2#top'),
      headers: { 'X-Trace': 't1' },
      body: { name: 'Ä' },
    })

    expect(upstream.arrivals).toEqual([
      {
        method: 'POST',
        path: '/users?page=2',
        body: '{"name":"Ä"}',
        headers: {
          host: `127.0.0.1:${upstream.port}`,
          connection: 'keep-alive',
          accept: '*/*',
          'accept-encoding': 'gzip, deflate, br',
          'user-agent': 'sluice',
          'content-type': 'application/json',
          'content-length': '13',
          'x-trace': 't1',
        },
      },
    ])
    expect(result).toEqual({
      status: 201,
      headers: { 'content-type': 'application/json', etag: '"1"', date: expect.any(String) },
      bodyType: 'json',
      body: { id: 17 },
      truncated: false,
      wireBytes: 9,
      decodedBytes: 9,
      durationMs: expect.any(Number),
      redirects: 0,
    })
  })

  it.each(['HEAD', 'DELETE', 'OPTIONS', 'PUT', 'PATCH'] as const)('can be a %s without a body', async (method) => {
    const upstream = await upstreamThat((_, response) => response.writeHead(204).end())

    expect(await resultOf(processor(), { method, url: upstream.url('/') })).toMatchObject({
      status: 204,
      bodyType: 'empty',
    })
    expect(upstream.arrivals).toMatchObject([{ method, body: '' }])
  })

  it('can be a HEAD whose answer announces an encoded body', async () => {
    const upstream = await upstreamThat((_, response) => {
      response.writeHead(200, { 'content-encoding': 'gzip', 'content-length': '500' }).end()
    })

    expect(await resultOf(processor(), { method: 'HEAD', url: upstream.url('/') })).toMatchObject({
      bodyType: 'empty',
      wireBytes: 0,
    })
  })

  it('succeeds with a status that was expected, and with no other', async () => {
    const upstream = await upstreamThat((_, response) => response.writeHead(404).end('none'))
    const handler = processor()

    expect(await run(handler, { url: upstream.url('/'), expect: [200, 404] })).toMatchObject({ status: 404 })
    expect(await run(handler, { url: upstream.url('/'), expect: ['3xx'] })).toEqual(
      discard(`127.0.0.1:${upstream.port} answered 404, not 3xx; asking again would not change that.\nnone`),
    )
  })

  it('reuses its connection, and closes it with the processor', async () => {
    const upstream = await upstreamThat((_, response) => response.end('x'))
    const handler = processor()
    for (let call = 0; call < 3; call++) await resultOf(handler, { url: upstream.url('/') })
    expect(upstream.connections).toBe(1)

    handler.close()

    await expect(run(handler, { url: upstream.url('/') })).rejects.toMatchObject({ code: 'SLUICE_CLOSED' })
  })

  it('is admitted when its connection is open, just before it is sent', async () => {
    const upstream = await upstreamThat((_, response) => response.end())
    const seen: unknown[] = []

    await run(
      processor(),
      { url: upstream.url('/') },
      contextWith({
        admit: async () => {
          seen.push({ connections: upstream.connections, arrivals: upstream.arrivals.length })
        },
      }),
    )

    expect(seen).toEqual([{ connections: 1, arrivals: 0 }])
    expect(upstream.arrivals).toHaveLength(1)
  })

  it.each([
    ['plain', {}, 'x'],
    ['compressed', { 'content-encoding': 'gzip' }, gzipSync('x')],
  ])('after an answer that closes its connection, %s, is admitted on an open one', async (_, headers, body) => {
    const upstream = await upstreamThat((_, response) =>
      response.writeHead(200, { connection: 'close', ...headers }).end(body),
    )
    const seen: number[] = []
    const handler = processor()
    const context = contextWith({ admit: async () => void seen.push(upstream.connections) })

    for (let call = 0; call < 3; call++) await run(handler, { url: upstream.url('/') }, context)

    expect(seen).toEqual([1, 2, 3])
    expect(upstream.connections).toBe(3)
  })

  it('is not sent when it is not admitted', async () => {
    const upstream = await upstreamThat((_, response) => response.end())
    const lost = new Error('lease lost')

    const context = contextWith({ admit: () => Promise.reject(lost) })

    await expect(run(processor(), { url: upstream.url('/') }, context)).rejects.toBe(lost)
    expect(upstream.arrivals).toEqual([])
  })

  it('is made over TLS to the host that the certificate names', async () => {
    const upstream = await upstreamThat((_, response) => response.end('safe'), { tls: certificate })
    const trusting = { resolve: async () => ['127.0.0.1'], ca: certificate.cert }

    const url = upstream.url('/', 'secure.test')

    expect(await resultOf(processor(trusting), { url })).toMatchObject({ body: 'safe' })
    await expect(run(processor({ ...trusting, ca: undefined as never }), { url })).rejects.toThrow('self-signed')
    await expect(run(processor(trusting), { url: upstream.url('/', 'other.test') })).rejects.toThrow(
      'ERR_TLS_CERT_ALTNAME_INVALID',
    )
  })

  it('with a payload that cannot be sent ends the job, by the name of the field', async () => {
    expect(await reasonOf(processor(), { url: 'gopher://x', headers: { Host: 'y' } })).toBe(
      'The payload cannot be sent: url must start with http:// or https://, not gopher:; headers["Host"] must not be given: the processor sets it.',
    )
  })
})

describe('an answer that was not expected', () => {
  let status = 0
  let headers: Record<string, string> = {}
  let upstream: HttpUpstream
  beforeEach(async () => {
    headers = {}
    upstream = await upstreamThat((_, response) => response.writeHead(status, headers).end('because'))
  })
  const answerOf = async (code: number, answerHeaders: Record<string, string> = {}) => {
    status = code
    headers = answerHeaders
    return run(processor({ maxResponseBytes: 0 }), { url: upstream.url('/') })
  }

  it('pushes the job back for as long as it says', async () => {
    const inTenSeconds = new Date(Date.now() + 10_000).toUTCString()

    expect(await answerOf(429, { 'retry-after': '7' })).toEqual(throttled({ retryAfterMs: 7_000 }))
    expect(await answerOf(503, { 'retry-after': '7' })).toEqual(throttled({ retryAfterMs: 7_000 }))
    expect(await answerOf(403, { 'x-ratelimit-remaining': '0', 'x-ratelimit-reset': '9' })).toEqual(
      throttled({ retryAfterMs: 9_000 }),
    )
    expect(await answerOf(429, { ratelimit: '"a";r=0;t=4' })).toEqual(throttled({ retryAfterMs: 4_000 }))
    expect(await answerOf(429)).toEqual(throttled())
    const { retryAfterMs } = (await answerOf(429, { 'retry-after': inTenSeconds })) as { retryAfterMs: number }
    expect(retryAfterMs).toBeGreaterThanOrEqual(8_000)
    expect(retryAfterMs).toBeLessThanOrEqual(11_000)
  })

  it.each([400, 401, 403, 404, 410, 422])('ends the job with %i and what the upstream said', async (code) => {
    expect(await answerOf(code)).toEqual(
      discard(`127.0.0.1:${upstream.port} answered ${code}, not 2xx; asking again would not change that.\nbecause`),
    )
  })

  it.each([408, 425, 500, 502, 503])('fails the job with %i, to be tried again', async (code) => {
    await expect(answerOf(code)).rejects.toMatchObject({ code: 'SLUICE_UPSTREAM', status: code })
  })
})
